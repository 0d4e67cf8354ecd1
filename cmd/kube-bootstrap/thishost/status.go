package thishost

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// Status is the state of a host, as `status -o json` prints it.
type Status struct {
	Role     string       `json:"role"` // empty: not part of a cluster
	Host     hostIdentity `json:"host"`
	UpToDate bool         `json:"upToDate"`
	Steps    []stepStatus `json:"steps"`

	// Programs of Kubernetes that differ from the release's, with their versions.
	Programs      map[string]string   `json:"programs,omitempty"`
	ControlPlanes []balancer.Backend  `json:"controlPlanes,omitempty"` // as this host sees them
	Etcd          []etcd.MemberStatus `json:"etcd,omitempty"`          // the members as one of them sees them

	// The strings are problems, empty if there is none. Only a control plane knows the last three.
	Quorum  string `json:"quorum,omitempty"`      // too few members of etcd are up
	Address string `json:"addressLost,omitempty"` // no interface of this host has its address
	// unreadable: only what holds with any settings is known
	SettingsLost      string                 `json:"settingsLost,omitempty"`
	NextExpiry        *pki.CertificateStatus `json:"nextExpiry,omitempty"`        // the certificate that expires first
	CertificateExpiry string                 `json:"certificateExpiry,omitempty"` // some have expired or expire soon
	// it hangs, or a network of it overlaps those of the cluster
	Docker string `json:"docker,omitempty"`
	// some are not enforced by the network plugin
	NetworkPolicy string `json:"networkPolicy,omitempty"`
	// workers were off for longer than their certificates are valid
	NodesExpired string                  `json:"nodesExpired,omitempty"`
	Rotation     *renewal.RotationStatus `json:"rotation,omitempty"`    // the one under way
	Upgrade      *upgrade.Record         `json:"upgrade,omitempty"`     // the unfinished one
	UpgradeLock  *upgrade.Holding        `json:"upgradeLock,omitempty"` // of the command that runs now
	Backups      *recovery.BackupStatus  `json:"backups,omitempty"`     // of a control plane; nil without a schedule

	Repairs []agent.Repair `json:"repairs,omitempty"` // the last ones by the agent, oldest first
}

type stepStatus struct {
	Stage    int      `json:"stage"`
	Step     string   `json:"step"`
	UpToDate bool     `json:"upToDate"`
	Missing  []string `json:"missing"`
	Error    string   `json:"error,omitempty"`
	// Problems are the names of the problems in Error, which no run solves.
	Problems []string `json:"problems,omitempty"`
}

// stepStatusOf says what was found. Without settings, a difference from the defaults says nothing.
func stepStatusOf(f step.Finding, lost error) stepStatus {
	one := stepStatus{Stage: f.Stage, Step: f.Step, Missing: append([]string{}, f.Diff...)}
	switch {
	case f.Err != nil:
		one.Error = f.Err.Error()
		for _, problem := range step.Problems(f.Err) {
			one.Problems = append(one.Problems, problem.Name)
		}
	case lost != nil && len(f.Diff) > 0:
		one.Missing, one.Error = []string{}, "not known without the settings ("+f.Diff.String()+")"
	default:
		one.UpToDate = len(f.Diff) == 0
	}
	return one
}

func statusCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the state of this host, its cluster and every step",
		Long: `Show a summary of this host and its cluster, and then the state of every step of
"kube-bootstrap master" or "worker": ok, MISSING or UNKNOWN. A step is MISSING if
the host differs from the settings; run master or worker again to repair it. A
step is UNKNOWN if its check got no answer in time. The command changes nothing.

The exit code is 5 if a step is MISSING or UNKNOWN, or if a certificate expires
within 30 days. With --watch it is that of the last status.`,
		Example: "  kube-bootstrap status\n  kube-bootstrap status -o json\n  kube-bootstrap status --watch",
	}
	format := output.AddFlag(c)
	watch := c.Flags().BoolP("watch", "w", false,
		"look every 5 seconds and print the status whenever it changes, until Ctrl-C")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var status Status
		var err error
		if *watch {
			status, err = statusWatch{look: inspectHost, pause: 5 * time.Second, format: *format, out: con.Out,
				terminal: con.Replaces()}.run(c.Context())
		} else if status, err = inspectHost(c.Context()); err == nil {
			err = format.Print(con.Out, "HostStatus", status, status.print)
		}
		if err == nil && !status.UpToDate {
			return exit.ErrNotUpToDate
		}
		return err
	}
	return c
}

// membersOf returns none if this host's etcd cannot be asked, which its step reports.
func membersOf(ctx context.Context, own etcd.Member, role string) []etcd.MemberStatus {
	if role != config.RoleControlPlane {
		return nil
	}
	members, _ := own.Status(ctx)
	return members
}

// nameOf returns the word of Kubernetes for a role.
func nameOf(role string) string {
	if role == local.ControlPlane {
		return "control plane"
	}
	return role
}

func (s Status) print(w io.Writer) {
	if s.Role == "" {
		fmt.Fprintln(w, "this host is not part of a cluster; `kube-bootstrap master` or `kube-bootstrap worker` "+
			"makes it one")
		return
	}
	if s.Role == local.Loaded {
		fmt.Fprintln(w, "this host has the images of a cluster and is not part of one yet")
	} else {
		fmt.Fprintf(w, "this host is a %s\n", nameOf(s.Role))
		s.printSummary(w)
	}
	s.printExpiry(w)
	for _, problem := range []string{s.Address, s.Docker, s.NetworkPolicy, s.NodesExpired} {
		if problem != "" {
			fmt.Fprintln(w, problem)
		}
	}
	if s.Rotation != nil {
		fmt.Fprintln(w, s.Rotation)
	}
	if s.UpgradeLock != nil {
		fmt.Fprintln(w, s.UpgradeLock)
	}
	if s.Upgrade != nil {
		fmt.Fprintln(w, s.Upgrade)
	}
	s.printBackupProblems(w)
	fmt.Fprintln(w)
	for _, one := range s.Steps {
		switch {
		case one.Error != "":
			output.Row(w, "UNKNOWN", one.Step, one.Error)
		case !one.UpToDate:
			output.Row(w, "MISSING", one.Step, step.Diff(one.Missing).String())
		default:
			output.Row(w, "ok", one.Step)
		}
	}
	s.printControlPlanes(w)
	s.printRepairs(w)
	if hint := s.hint(); hint != "" {
		fmt.Fprintln(w, hint)
	}
}

// hint returns the next step if something is not up to date. A run on this host
// helps neither without an etcd quorum nor for checks that only did not answer
// in time.
func (s Status) hint() string {
	repair := s.Role
	if s.Role == local.Loaded {
		repair = "offline bootstrap"
	}
	upToDate := !slices.ContainsFunc(s.Steps, func(one stepStatus) bool { return !one.UpToDate })
	switch {
	case s.UpToDate, upToDate && s.CertificateExpiry != "":
		return "" // printExpiry says what to do
	case s.SettingsLost != "":
		return s.SettingsLost
	case s.Address != "":
		return s.Address
	case s.Quorum != "":
		return s.Quorum
	case len(s.problems()) > 0:
		return fmt.Sprintf("solve %s as its line says; after that, `kube-bootstrap %s` repairs the rest",
			strings.Join(s.problems(), ", "), repair)
	case slices.ContainsFunc(s.Steps, func(one stepStatus) bool { return len(one.Missing) > 0 }):
		return fmt.Sprintf("run `kube-bootstrap %s` to repair it", repair)
	}
	return fmt.Sprintf("what is UNKNOWN gave no answer: look again, and if that does not change, run `kube-bootstrap "+
		"%s`, which waits longer", repair)
}

func (s Status) problems() []string {
	var names []string
	for _, one := range s.Steps {
		names = append(names, one.Problems...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
