package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bootUp starts a host and waits until it is ready. One that a killed run has
// told to stop goes off meanwhile, and is started again.
func (f *fleet) bootUp(ctx context.Context, m member, machine docker.Machine) error {
	const tries = 3
	for try := 1; ; try++ {
		if err := f.docker.StartMachine(ctx, machine); err != nil {
			return err
		}
		err := f.ready(ctx, m.name)
		if err == nil || try == tries || !goesOff(err) {
			return err
		}
		if off := f.awaitOff(ctx, m.name); off != nil {
			return errors.Join(err, off)
		}
	}
}

// goesOff reports whether a command ended as those on a host that stops do: by
// a signal, or with the host.
func goesOff(err error) bool {
	var exit *driver.ExitError
	return !errors.As(err, &exit) || exit.Code > 128
}

func (f *fleet) awaitOff(ctx context.Context, name string) error {
	return step.Until(ctx, func(ctx context.Context) error {
		machine, err := f.docker.Kept(ctx, name, false)
		if err == nil && machine.Running {
			err = fmt.Errorf("%s is stopping", name)
		}
		return err
	}, nil)
}

// readyScript waits on the host itself: one command instead of many, each of
// which would cost the engine more than the look.
const readyScript = `i=0
until curl -sf --max-time 20 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null; do
	i=$((i+1)); [ $i -lt "$1" ] || { echo "Docker does not answer on this host" >&2; exit 1; }
	sleep 0.05
done
[ ! -d /run/systemd/system ] || [ "$(systemctl is-system-running --wait)" != stopping ] || exit 143`

func (f *fleet) ready(ctx context.Context, name string) error {
	limit := step.Limit(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("Docker on %s does not answer within %s", name, limit))
	defer cancel()
	step.Report(ctx, "wait for its Docker", 0, 0)
	err := f.node(member{name: name}).Exec(ctx, driver.Exec{Args: []string{"/bin/sh", "-c", readyScript, "sh", "5000"}})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimSpace(f.docker.Tail(context.WithoutCancel(ctx), name, 20)))
}

// bootedScript ends with 143, as if it was stopped, where all is.
const bootedScript = `[ ! -d /run/systemd/system ] || case $(systemctl is-system-running) in
initializing|starting) exit 1;;
stopping) exit 143;;
esac
curl -sf --max-time 5 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null`

// boots reports whether a host that runs is not ready, or not for long: a run
// that was killed has told it to start, or to stop. One whose Docker is away for
// other reasons is not waited for.
func (f *fleet) boots(ctx context.Context, name string) bool {
	err := f.node(member{name: name}).Exec(ctx, driver.Exec{Args: []string{"/bin/sh", "-c", bootedScript}})
	if err == nil || goesOff(err) {
		return err != nil
	}
	machine, err := f.docker.Kept(ctx, name, false)
	return err == nil && time.Since(machine.Started) < step.Limit(ctx)
}
