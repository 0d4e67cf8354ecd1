package thishost

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func turndownCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:     "turndown",
		Aliases: []string{"reset"},
		Short:   "Remove kube-bootstrap from this host and restore its previous state",
		Long: `Revert everything that master or worker changed on this host: Docker,
containerd, links, firewall rules and files. It needs no network, and does
nothing on a host that is not part of a cluster.

An image that one of your containers uses, and a file that was edited since, are
kept and reported with the reason. A worker asks the control planes to delete its
node and its user of etcd. If none answers, run "kube-bootstrap forget" on a
control plane later. One of several control planes also leaves etcd; this is
refused if the other members would lose their quorum.

The last control plane has the only copy of the cluster's state, and any host may
have volumes of the addon local-path. Confirm their removal on the terminal or
with --yes.`,
		Example: `  kube-bootstrap turndown
  kube-bootstrap turndown --keep-images      # faster to set up again; turndown removes them later`,
	}
	settings.AddFlags(c, config.Turndown)
	con.AddRecords(c.Flags())
	dryRun, format := AddDryRun(c, "list what would be reverted")
	yes := console.AddYes(c, true)
	force := c.Flags().Bool("force", false,
		"turn a control plane down even if etcd loses its quorum or the others do not answer")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, _, err := source.Load(settings.Path(con.Env, c.Flags(), config.Turndown),
			source.HostEnv(con.Env), c.Flags())
		if err != nil {
			return exit.Usage(err)
		}
		if err := AsRoot(); err != nil {
			return err
		}
		if *dryRun {
			return printUndo(con.Out, *format, cfg.KeepImages)
		}
		if err := con.Confirm(c.Context(), *yes, lossesOfTurndown); err != nil {
			return err
		}
		return turndown(c.Context(), con, cfg.KeepImages, *force)
	}
	return c
}

// lossesOfTurndown lists what no other host of the cluster has.
func lossesOfTurndown(ctx context.Context) ([]string, error) {
	h, done, err := installed(true)
	if err != nil || done == nil {
		return nil, err
	}
	var losses []string
	for _, claim := range parts.LocalVolumes(h.Files) {
		losses = append(losses, "the data of PersistentVolumeClaim "+claim)
	}
	for _, name := range autoRemoved(ctx, h) {
		losses = append(losses, "container "+name+", which was started with --rm, as Docker is restarted")
	}
	if h.Saved.Role != local.ControlPlane || !membership.HoldsLastCopy(parts.InForce(h).Etcd.Member) {
		return losses, nil
	}
	return append(losses,
		"control plane "+h.Config.HostName+", the last one of its cluster",
		"all objects of the cluster in etcd",
		"the keys of its certificate authorities"), nil
}

// autoRemoved returns none if Docker does not answer.
func autoRemoved(ctx context.Context, h *local.Host) []string {
	if !h.ManagesNetwork() {
		return nil
	}
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	names, _ := maindocker.AutoRemoved(ctx, local.MainDocker())
	return names
}

func turndown(ctx context.Context, con *console.Console, keepImages, force bool) error {
	release, err := host.Lock(ctx, lockPath)
	if err != nil {
		return err
	}
	defer release()
	h, done, err := installed(keepImages)
	if err != nil {
		return err
	}
	if done == nil {
		con.Say("this host is not part of a cluster: nothing to undo")
		return nil
	}
	runner, err := con.BeginLogged("turndown")
	if err != nil {
		return err
	}
	started := time.Now()
	left, err := membership.Leave(ctx, h, force)
	if err != nil {
		return exit.Firm(err)
	}
	if err := h.Suspend(); err != nil {
		return err
	}
	if err := runner.Undo(ctx, done); err != nil {
		con.End()
		warnAll(con, "left: ", runner.Left())
		return exit.Resume(err, exit.RunAgain)
	}
	con.End()
	if lost := h.Saved.Lost; lost != nil {
		con.Warn(lost.Error() + "; this host was reverted as if it had the default settings")
	}
	sayLeft(con, runner.Left(), started)
	warnAll(con, "but the cluster was not told: ", left)
	return nil
}

func sayLeft(con *console.Console, left []string, started time.Time) {
	text := "this host is in its previous state"
	if len(left) > 0 {
		text += ", except for what was left on purpose"
	}
	con.Done(started, text)
	warnAll(con, "left: ", left)
}

func warnAll(con *console.Console, begin string, lines []string) {
	for _, line := range lines {
		con.Warn(begin + line)
	}
}

// installed returns the plan that set up this host; empty if there is nothing to remove.
func installed(keepImages bool) (*local.Host, step.Plan, error) {
	saved, err := local.ReadSaved(host.Files{})
	role := saved.Role
	if role == "" && !keepImages {
		role = saved.Kept
	}
	if err != nil || role == "" {
		return nil, nil, err
	}
	saved.Config.KeepImages = keepImages
	h, err := local.Open(saved.Config)
	if err != nil {
		return nil, nil, err
	}
	switch role {
	case config.RoleControlPlane:
		return h, plan.ControlPlane(h), nil
	case local.Loaded:
		return h, plan.Load(h), nil
	}
	return h, plan.Worker(h), nil
}

func printUndo(out io.Writer, format output.Format, keepImages bool) error {
	_, done, err := installed(keepImages)
	if err != nil {
		return err
	}
	done = done.Wanted()
	names := []string{}
	for i := len(done) - 1; i >= 0; i-- {
		for _, s := range done[i] {
			if s.Undo != nil {
				names = append(names, s.Name)
			}
		}
	}
	return format.Print(out, "Step", names, func(w io.Writer) {
		for _, name := range names {
			fmt.Fprintln(w, "undo: "+name)
		}
		if len(names) == 0 {
			fmt.Fprintln(w, "nothing to do")
		}
	})
}
