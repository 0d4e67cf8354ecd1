package localcluster

import (
	"cmp"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// machineReport is what `node inspect -o json` prints.
type machineReport struct {
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

func reportOf(name string, f machines.Facts) machineReport {
	return machineReport{
		Name: name, Address: addresses.Text(f.Addr), HostName: f.HostName, MachineID: f.MachineID,
		Kernel: f.Kernel, Architecture: f.Arch, Docker: f.Docker, FreeMiB: f.Free >> 20,
		ClockAhead: f.Clock.String(), Role: f.Role, Complete: f.Complete, CAHash: f.CAHash,
	}
}

func (r machineReport) print(w io.Writer) {
	output.Fields(w, [][2]string{
		{"name", r.Name}, {"address", r.Address}, {"host name", r.HostName}, {"machine ID", r.MachineID},
		{"kernel", r.Kernel}, {"architecture", r.Architecture}, {"Docker", strconv.FormatBool(r.Docker)},
		{"free space in MiB", strconv.FormatInt(r.FreeMiB, 10)}, {"clock ahead", r.ClockAhead},
		{"role", cmp.Or(r.Role, "none")}, {"complete", strconv.FormatBool(r.Complete)},
		{"CA certificate hash", cmp.Or(r.CAHash, "none")},
	})
}

func nodeInspect(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "inspect NODE",
		Short: "Print what is found on the machine of a node",
		Long: `Print what is found on the machine of a node: its system, its addresses, its clock,
and the cluster that it is part of. The machine need not be part of a cluster, and
no other machine must answer.`,
		Example: `  kube-bootstrap node inspect board-1 -f lab.yaml
  kube-bootstrap node inspect board-1 -f lab.yaml -o json`,
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		facts, err := machines.Inspect(c.Context(), o.Selection, args[0])
		if err != nil {
			return exit.Firm(err)
		}
		report := reportOf(args[0], facts)
		return format.Print(con.Out, "Machine", report, report.print)
	}
	return c
}

// noDockerEnv refuses the variables of a docker client: docker connects with the ssh of the user, which
// knows neither the settings of the file nor the password of sudo.
func noDockerEnv(node string) error {
	return &step.Problem{
		Name: "machines", Firm: true, Text: "docker-env cannot lead a docker client to machine " + node +
			", because docker uses the ssh command and not the settings of the file",
		Remedy: "use `kube-bootstrap node ssh " + node + " docker ...`, or set DOCKER_HOST=ssh://USER@ADDRESS",
	}
}
