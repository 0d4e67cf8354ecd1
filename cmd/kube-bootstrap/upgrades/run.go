package upgrades

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

const hostAdvice = "run the same command again to finish, or `kube-bootstrap upgrade rollback` to take it back"

// load loads the images of the next version.
func (u hostRun) load(wanted, bundle string) error {
	started := time.Now()
	next, err := u.begin(wanted, bundle)
	if err != nil {
		return exit.Blocked(err)
	}
	if u.dryRun {
		return u.print(plan.LoadNext(next, u.h.Saved.Role))
	}
	if err := u.runner.Do(u.command.Context(), plan.LoadNext(next, u.h.Saved.Role)); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	u.con.Done(started, "this host has the images of Kubernetes "+u.h.Upgrade.To.Kubernetes)
	return nil
}

// apply loads the images of the next version, and then replaces the control plane of this host.
func (u hostRun) apply(wanted, bundle string) error {
	ctx, role, started := u.command.Context(), u.h.Saved.Role, time.Now()
	next, err := u.begin(wanted, bundle)
	if err != nil {
		return exit.Blocked(err)
	}
	before := slices.Concat(plan.LoadNext(next, role), recovery.BeforeUpgrade(u.h, u.con.Version))
	if u.dryRun {
		return u.print(before, plan.Of(u.h, role))
	}
	if err := u.runner.Do(ctx, before); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	if err := u.converge(ctx, u.h); err != nil {
		return u.giveUp(ctx, err)
	}
	to, from := u.h.Upgrade.To.Kubernetes, u.h.Upgrade.From.Kubernetes
	if role == local.ControlPlane {
		u.con.Done(started, fmt.Sprintf("the control plane of this host runs Kubernetes %s and emulates %s", to, from))
		return nil
	}
	u.con.Done(started, "this host is ready for Kubernetes "+to)
	return nil
}

// begin checks whether the upgrade can begin or continue, and returns this host with the next version.
func (u hostRun) begin(wanted, bundle string) (*local.Host, error) {
	next, err := u.next(u.command.Context(), wanted, bundle)
	if err != nil {
		return nil, err
	}
	if err := u.check(u.applyChecks(next)); err != nil {
		return nil, err
	}
	u.h.Upgrade = local.NewUpgrade(u.h, next)
	return next, nil
}

// next returns this host with the next version, or the problem of that version.
func (u hostRun) next(ctx context.Context, wanted, bundle string) (*local.Host, error) {
	to, err := upgrade.Target(u.h.Saved.Config.KubernetesVersion, wanted)
	if err == nil {
		err = u.h.Upgrade.Next(to)
	}
	if err != nil {
		return nil, err
	}
	next, err := local.OpenNext(u.h, to, bundle)
	if err != nil {
		return nil, err
	}
	return local.ResolveImages(ctx, next, u.h.Saved.Role), nil
}

// applyChecks returns what can block the first step. The first control plane of the cluster asks for all hosts.
func (u hostRun) applyChecks(next *local.Host) step.Plan {
	checks := preflight.NextImages(next, u.h.Saved.Role)
	if u.h.Saved.Role == local.ControlPlane && !u.h.Upgrade.Begun() {
		return slices.Concat(checks, plan.UpgradeChecks(u.h, next))
	}
	return checks
}

// giveUp returns to the old programs after a failure, unless the user has interrupted the run.
func (u hostRun) giveUp(ctx context.Context, failed error) error {
	if ctx.Err() != nil {
		return exit.Resume(failed, hostAdvice)
	}
	u.con.Warn(fmt.Sprintf("Kubernetes %s does not become Ready on this host, which returns to %s",
		u.h.Upgrade.To.Kubernetes, u.h.Upgrade.From.Kubernetes))
	old, err := local.Open(u.h.Saved.Config)
	if err == nil {
		old.Upgrade = upgrade.Record{}
		err = u.converge(ctx, old)
	}
	if err != nil {
		return exit.Resume(fmt.Errorf("%w; and the return to the old programs failed: %w", failed, err), hostAdvice)
	}
	return exit.Resume(failed, "this host is back at Kubernetes "+u.h.Saved.Config.KubernetesVersion)
}

// rollback returns to the old programs.
func (u hostRun) rollback() error {
	if err := u.h.Upgrade.Returnable(); err != nil {
		return err
	}
	from := u.h.Upgrade.From.Kubernetes
	u.h.Upgrade = upgrade.Record{}
	if u.dryRun {
		return u.print(plan.Of(u.h, u.h.Saved.Role))
	}
	started := time.Now()
	if err := u.converge(u.command.Context(), u.h); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	u.con.Done(started, "this host is back at Kubernetes "+from)
	return nil
}

// finish ends the emulation, and then installs all other components of the new version.
func (u hostRun) finish() error {
	if !u.h.Upgrade.Begun() {
		return upgrade.None()
	}
	started, ctx, to := time.Now(), u.h.Limited(u.command.Context()), u.h.Upgrade.To.Kubernetes
	servers := parts.APIServers(u.h)
	if err := servers.Incomplete(ctx, to); err != nil {
		return err
	}
	if u.h.Saved.Role == local.ControlPlane && u.h.Upgrade.Phase == upgrade.Emulating {
		u.h.Upgrade.Phase = upgrade.Finishing
		if u.dryRun {
			return u.print(plan.Of(u.h, u.h.Saved.Role))
		}
		if err := u.converge(ctx, u.h); err != nil {
			return exit.Resume(err, exit.RunAgain)
		}
	}
	if err := servers.Emulating(ctx); err != nil {
		return u.waitsForOthers(err)
	}
	if err := u.complete(ctx); err != nil || u.dryRun {
		return err
	}
	u.con.Done(started, "this host has Kubernetes "+to)
	return nil
}

// waitsForOthers tells on a control plane that others must end the emulation first. A worker has changed nothing.
func (u hostRun) waitsForOthers(err error) error {
	if u.h.Saved.Role == local.Worker || len(step.Problems(err)) == 0 {
		return err
	}
	u.con.End()
	u.con.Warn("this control plane no longer emulates the old version; " + err.Error())
	return nil
}

// complete applies the plan of the new version.
func (u hostRun) complete(ctx context.Context) error {
	role, to := u.h.Saved.Role, u.h.Upgrade.To
	next, err := local.OpenNext(u.h, to.Kubernetes, u.h.Upgrade.Bundle)
	if err != nil {
		return err
	}
	next = next.Resolve(ctx, role)
	if err := u.check(preflight.Plan(next, role)); err != nil {
		return err
	}
	if u.dryRun {
		return u.print(plan.Of(next, role))
	}
	if err := u.converge(ctx, next); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	return nil
}

func (u hostRun) check(checks step.Plan) error {
	return exit.OnlyProblems((&step.Runner{}).Do(u.command.Context(), checks))
}

// converge applies the plan of a host, and waits until its control plane is stable.
func (u hostRun) converge(ctx context.Context, h *local.Host) error {
	if err := h.Suspend(); err != nil {
		return err
	}
	if err := u.runner.Do(ctx, plan.Of(h, h.Saved.Role)); err != nil {
		return err
	}
	if h.Saved.Role != local.ControlPlane {
		return nil
	}
	stable := parts.New(h, h.Saved.Role).ControlPlane.Settled()
	return u.runner.Do(ctx, step.Plan{{stable}}.Within(h.Timeout()))
}

// print lists the changes of plans.
func (u hostRun) print(plans ...step.Plan) error {
	return thishost.PrintChanges(u.command.Context(), u.con, u.format, plans...)
}
