package upgrades

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// report is what `upgrade plan -o json` prints.
type report struct {
	From   string             `json:"from"`
	To     string             `json:"to"`
	Nodes  []upgrade.Node     `json:"nodes"`
	Steps  []upgrade.Step     `json:"steps"`
	Checks []thishost.Checked `json:"checks"`
}

func planCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "plan",
		Short: "List the steps of an upgrade and everything that blocks it, and change nothing",
		Long: `List what an upgrade to the next minor version of Kubernetes changes on which host,
in which order, and everything that blocks it. Run it on a control plane. Nothing
is changed. The exit code is 7 if something blocks the upgrade.

Pods that a drain cannot move are named too. They block no control plane.`,
		Example: "  kube-bootstrap upgrade plan\n  kube-bootstrap upgrade plan --to 1.37 -o json",
	}
	to := c.Flags().String("to", "",
		"release or minor version of Kubernetes (empty: the newest patch of the next one)")
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		h, err := thishost.OpenControlPlane()
		if err != nil {
			return err
		}
		found, err := inspect(c.Context(), h, *to)
		if err != nil {
			return err
		}
		if err := format.Print(con.Out, "UpgradePlan", found, found.print); err != nil {
			return err
		}
		return found.blocked()
	}
	return c
}

func inspect(ctx context.Context, h *local.Host, wanted string) (report, error) {
	to, err := upgrade.Target(h.Config.KubernetesVersion, wanted)
	if err != nil {
		return report{}, exit.Blocked(err)
	}
	if err := h.Upgrade.Next(to); err != nil {
		return report{}, exit.Blocked(err)
	}
	next, err := local.OpenNext(h, to, "")
	if err != nil {
		return report{}, err
	}
	found, err := plan.Nodes(ctx, h)
	if err != nil {
		return report{}, err
	}
	r := report{From: h.Config.KubernetesVersion, To: to}
	for _, n := range found {
		r.Nodes = append(r.Nodes, upgrade.NodeOf(n))
	}
	r.Steps = upgrade.Steps(r.Nodes, h.Versions, next.Versions)
	checks := slices.Concat(plan.UpgradeChecks(h, next), plan.DrainChecks(h, node.Drain{}))
	for _, f := range (&step.Runner{}).Check(ctx, checks) {
		r.Checks = append(r.Checks, thishost.CheckedOf(f))
	}
	return r, ctx.Err()
}

// blocked returns the error of a plan with problems.
func (r report) blocked() error {
	n := 0
	for _, c := range r.Checks {
		if !c.OK {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return exit.Blocked(fmt.Errorf("%d checks found what blocks the upgrade", n))
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "upgrade of Kubernetes from %s to %s\n\n", r.From, r.To)
	output.Row(w, "NODE", "ROLE", "KUBELET")
	for _, n := range r.Nodes {
		output.Row(w, n.Name, n.Role, n.Kubelet)
	}
	fmt.Fprintln(w)
	output.Row(w, "COMMAND", "NODE", "CHANGES")
	for _, s := range r.Steps {
		output.Row(w, s.Command, s.Node, s.Changes)
	}
	fmt.Fprintln(w)
	for _, c := range r.Checks {
		c.Print(w)
	}
}
