package machines

import (
	"cmp"
	"context"
	"errors"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Report is what Inspect found on a machine.
type Report struct {
	Name         string `json:"name"`
	Address      string `json:"address"`
	HostName     string `json:"hostName"`
	MachineID    string `json:"machineID"`
	Kernel       string `json:"kernel"`
	Architecture string `json:"architecture"`
	Docker       bool   `json:"docker"`
	FreeMiB      int64  `json:"freeMiB"`
	ClockAhead   string `json:"clockAhead"` // of the clock of this machine
	Role         string `json:"role,omitempty"`
	Complete     bool   `json:"complete"` // the last run there has succeeded
	CAHash       string `json:"caCertHash,omitempty"`
}

// Rows returns the fields for people.
func (r Report) Rows() [][2]string {
	return [][2]string{
		{"name", r.Name}, {"address", r.Address}, {"host name", r.HostName}, {"machine ID", r.MachineID},
		{"kernel", r.Kernel}, {"architecture", r.Architecture}, {"Docker", strconv.FormatBool(r.Docker)},
		{"free space in MiB", strconv.FormatInt(r.FreeMiB, 10)}, {"clock ahead", r.ClockAhead},
		{"role", cmp.Or(r.Role, "none")}, {"complete", strconv.FormatBool(r.Complete)},
		{"CA certificate hash", cmp.Or(r.CAHash, "none")},
	}
}

func (f Facts) report(name string) Report {
	return Report{
		Name: name, Address: addresses.Text(f.Addr), HostName: f.HostName, MachineID: f.MachineID,
		Kernel: f.Kernel, Architecture: f.Arch, Docker: f.Docker, FreeMiB: f.Free >> 20,
		ClockAhead: f.Clock.String(), Role: f.Role, Complete: f.Complete, CAHash: f.CAHash,
	}
}

// Inspect returns what is found on one machine. No other machine must answer.
func Inspect(ctx context.Context, o session.Selection, name string) (Report, error) {
	o, err := Only(o, name)
	if err != nil {
		return Report{}, err
	}
	return session.Get(ctx, o, session.Requirements{}, func(s *session.Session, _ topology.State) (Report, error) {
		p, err := Of(s)
		if err != nil {
			return Report{}, err
		}
		facts, err := p.Facts(ctx)
		return facts[name].report(name), errors.Join(err, facts[name].Err)
	})
}

// NoDockerEnv refuses the variables of a docker client: docker connects with the ssh of the user, which
// knows neither the settings of the file nor the password of sudo.
func NoDockerEnv(node string) error {
	return &step.Problem{
		Name: "machines", Firm: true, Text: "docker-env cannot lead a docker client to machine " + node +
			", because docker uses the ssh command and not the settings of the file",
		Remedy: "use `kube-bootstrap node ssh " + node + " docker ...`, or set DOCKER_HOST=ssh://USER@ADDRESS",
	}
}
