package thishost

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// hostIdentity is what identifies a host in its cluster.
type hostIdentity struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Kubernetes string `json:"kubernetesVersion"`
	Subnet     string `json:"subnet,omitempty"` // of its containers and pods; empty: none yet
}

func identityOf(h *local.Host) hostIdentity {
	id := hostIdentity{Name: h.Config.HostName, Address: h.IP(), Kubernetes: h.Config.KubernetesVersion}
	if lease, err := h.Lease(); err == nil {
		id.Subnet = lease.Subnet.Masked().String()
	}
	return id
}

func (s Status) printSummary(w io.Writer) {
	output.Fields(w, [][2]string{
		{"host", s.Host.Name + ", " + s.Host.Address},
		{"Kubernetes", s.Host.Kubernetes},
		{"subnet", s.Host.Subnet},
		{"steps", s.countSteps()},
		{"API servers", count(s.ControlPlanes, func(c balancer.Backend) bool { return c.APIServer }, "ready")},
		// none on a worker
		{"etcd", count(s.Etcd, func(m etcd.MemberStatus) bool { return m.Healthy }, "members healthy")},
		{"last good backup", s.lastBackup()},
	})
}

// lastBackup returns "" without a schedule of backups.
func (s Status) lastBackup() string {
	if s.Backups == nil {
		return ""
	}
	return s.Backups.String()
}

func (s Status) printBackupProblems(w io.Writer) {
	if s.Backups == nil {
		return
	}
	for _, p := range s.Backups.Problems {
		fmt.Fprintln(w, p)
	}
}

func (s Status) countSteps() string {
	steps := s.ByState()
	text := fmt.Sprintf("%d up to date", len(steps["up to date"]))
	for _, state := range []string{"missing", "unknown"} {
		if n := len(steps[state]); n > 0 {
			text += fmt.Sprintf(", %d %s", n, state)
		}
	}
	return text
}

// ByState returns the names of the steps by "up to date", "missing" and "unknown". A step
// whose check failed is neither missing nor up to date.
func (s Status) ByState() map[string][]string {
	all := map[string][]string{}
	for _, one := range s.Steps {
		state := "missing"
		switch {
		case one.Error != "":
			state = "unknown"
		case one.UpToDate:
			state = "up to date"
		}
		all[state] = append(all[state], one.Step)
	}
	return all
}

// count returns how many of all are good, "" if there are none.
func count[T any](all []T, good func(T) bool, state string) string {
	if len(all) == 0 {
		return ""
	}
	n := 0
	for _, one := range all {
		if good(one) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d %s", n, len(all), state)
}

func (s Status) printExpiry(w io.Writer) {
	next := s.NextExpiry
	switch {
	case s.CertificateExpiry != "":
		fmt.Fprintln(w, s.CertificateExpiry)
	case next != nil:
		fmt.Fprintf(w, "of the certificates, %s expires first: on %s, in %s\n", next.Name, expires(*next), left(*next))
	}
}

// printControlPlanes prints the control planes if there are several. The steps describe a single one.
func (s Status) printControlPlanes(w io.Writer) {
	if len(s.ControlPlanes) < 2 {
		return
	}
	fmt.Fprintln(w)
	output.Row(w, "CONTROL PLANE", "API SERVER", "ETCD", "MEMBER")
	for _, c := range s.ControlPlanes {
		api, etcd := readiness(c.APIServer), readiness(c.Etcd)
		if c.Joining {
			api, etcd = "joining", "joining"
		}
		output.Row(w, c.IP, api, etcd, s.member(c.IP))
	}
}

// printRepairs prints what the agent has done, the last repair at the end.
func (s Status) printRepairs(w io.Writer) {
	const shown = 5
	if len(s.Repairs) == 0 {
		return
	}
	fmt.Fprintln(w)
	output.Row(w, "REPAIRED", "STEP", "CHANGES")
	for _, r := range s.Repairs[max(0, len(s.Repairs)-shown):] {
		what := step.Diff(r.Changes).String()
		if r.Error != "" {
			what = "FAILED: " + r.Error
		}
		output.Row(w, r.At.Format(time.RFC3339), r.Step, what)
	}
}

func readiness(ready bool) string {
	if ready {
		return "ready"
	}
	return "not ready"
}

// member returns the state of the etcd member with an address, or "" if it is unknown.
func (s Status) member(ip string) string {
	for _, m := range s.Etcd {
		switch {
		case m.IP != ip:
		case !m.Up:
			return "down"
		case !m.Healthy:
			return "not healthy"
		case m.Learner:
			return "learner"
		case m.Leader:
			return fmt.Sprintf("leader, revision %d", m.Revision)
		default:
			return fmt.Sprintf("voter, revision %d", m.Revision)
		}
	}
	return ""
}

// statusWatch prints the status of a host whenever it changes.
type statusWatch struct {
	look     func(context.Context) (Status, error)
	pause    time.Duration // between two checks
	format   output.Format
	out      io.Writer
	terminal bool // the status replaces the one before
}

// run returns the last status once the user ends the command.
func (s statusWatch) run(ctx context.Context) (last Status, err error) {
	var printed []byte
	for {
		status, err := s.look(ctx)
		if ctx.Err() != nil && printed != nil {
			return last, nil
		}
		if err != nil {
			return last, err
		}
		last = status
		var text bytes.Buffer
		if err := s.format.Print(&text, "HostStatus", status, status.print); err != nil {
			return last, err
		}
		if !bytes.Equal(text.Bytes(), printed) {
			printed = text.Bytes()
			if err := s.print(printed); err != nil {
				return last, err
			}
		}
		if step.Pause(ctx, s.pause) != nil {
			return last, nil
		}
	}
}

// print writes a time before each table and a separator before each YAML document. JSON needs none.
func (s statusWatch) print(text []byte) error {
	const clearScreen = "\x1b[H\x1b[2J" // cursor to the first column of the first line, clear
	before, after := "", ""
	switch {
	case s.terminal:
		before = clearScreen
	case s.format == output.Table:
		before, after = time.Now().Format(time.RFC3339)+"\n", "\n"
	case s.format == "yaml":
		before = "---\n"
	}
	_, err := io.WriteString(s.out, before+string(text)+after)
	return err
}
