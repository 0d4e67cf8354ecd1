package upgrades

import (
	"crypto/rand"
	"os"
	"os/user"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// lockLimit is the time for the objects of the lock. After it, the API counts as unreachable.
const lockLimit = 20 * time.Second

// holderOf returns a new holder of the lock of an upgrade: the user, the machine, and this run.
func holderOf(con *console.Console) string {
	name := con.Env("SUDO_USER")
	if me, err := user.Current(); name == "" && err == nil {
		name = me.Username
	}
	machine, _ := os.Hostname()
	return name + "@" + machine + "/" + rand.Text()[:8]
}

// locked does a step of an upgrade while it holds the lock of the cluster.
func (u hostRun) locked(do func(hostRun) error) error {
	if u.dryRun {
		return do(u)
	}
	lock := plan.UpgradeLock(u.h)
	lock.Holder, lock.Nested = u.holder, u.holder != ""
	if !lock.Nested {
		lock.Holder = holderOf(u.con)
	}
	where := "upgrade " + u.command.Name() + " on " + u.h.Config.HostName
	lock.At(where)
	if err := u.take(lock); err != nil {
		return err
	}
	u.command.SetContext(lock.Keep(u.command.Context()))
	defer lock.Release()
	u.runner.Emit = following(lock, where+": ", u.runner.Emit)
	return do(u)
}

// take takes the lock. Without an API server, only an upgrade that has begun continues: this host may be the one
// whose API server is missing.
func (u hostRun) take(lock *upgrade.Lock) error {
	take := step.Plan{{lock.TakeStep()}}
	if u.h.Saved.Role == local.ControlPlane && !lock.Nested {
		take = append(step.Plan{{lock.Prepare()}}, take...)
	}
	err := exit.OnlyProblems(u.runner.Do(u.command.Context(), take.Within(lockLimit)))
	if err == nil || u.command.Context().Err() != nil || len(step.Problems(err)) > 0 || !u.h.Upgrade.Begun() {
		return err
	}
	u.con.Warn("the upgrade continues without its lock, because no API server answers: " + err.Error())
	return nil
}

// following returns emit, which also records the step in the lock.
func following(lock *upgrade.Lock, where string, emit func(step.Event)) func(step.Event) {
	return func(e step.Event) {
		if e.Kind == step.Started {
			lock.At(where + e.Step)
		}
		emit(e)
	}
}
