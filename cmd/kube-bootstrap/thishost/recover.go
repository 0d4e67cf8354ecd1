package thishost

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// addRecovery adds --recover, and returns the function that makes a run a recovery if the flag is set.
func addRecovery(
	con *console.Console, c *cobra.Command,
) func(context.Context, hostVerb, *local.Host) (hostVerb, error) {
	wanted := c.Flags().Bool("recover", false,
		"continue without the other control planes, which are lost, or with damaged data of etcd")
	yes := c.Flags().BoolP("yes", "y", false, "with --recover: do not ask")
	return func(ctx context.Context, v hostVerb, h *local.Host) (hostVerb, error) {
		if !*wanted {
			return v, nil
		}
		dryRun, err := c.Flags().GetBool("dry-run")
		if err != nil {
			return v, err
		}
		if err := confirmRecovery(ctx, con, h, *yes || dryRun); err != nil {
			return v, err
		}
		h.Recovering, v.plan = true, plan.Recover
		v.next = "the other control planes do not return by themselves: run `kube-bootstrap turndown --force` on " +
			"each, and then what `kube-bootstrap token create --control-plane` prints; or `kube-bootstrap forget` here"
		return v, nil
	}
}

// confirmRecovery refuses a recovery that is not needed, and has the user confirm one. A recovery that was interrupted
// continues.
func confirmRecovery(ctx context.Context, con *console.Console, h *local.Host, yes bool) error {
	if h.Saved.Role != local.ControlPlane {
		return exit.Firm(&step.Problem{Name: "role", Firm: true, Text: "this host is not a control plane",
			Remedy: "run `kube-bootstrap master --recover` on a surviving control plane"})
	}
	if h.Files.Exists(local.RecoveringFile) {
		return nil
	}
	own := parts.InForce(h).Etcd.Member
	if err := recovery.QuorumProblem(h.Limited(ctx), own); err != nil {
		return exit.Firm(err)
	}
	return con.Confirm(ctx, yes, func(context.Context) ([]string, error) { return lossesOfRecovery(own.Peers), nil })
}

func lossesOfRecovery(others []string) []string {
	if len(others) == 0 {
		return []string{"the changes of the cluster that etcd cannot read from its data"}
	}
	at := strings.Join(others, ", ")
	return []string{
		"the control planes at " + at + " from the cluster",
		"the changes that only they have (if they still run and are unreachable from here, their cluster continues " +
			"and all its changes are lost)",
	}
}
