package testhost

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

// bootUp starts a host and waits until it is ready. A host that a killed run was
// stopping goes off meanwhile, and is started again.
func (m Machine) bootUp(ctx context.Context, config docker.Machine) error {
	const tries = 3
	for try := 1; ; try++ {
		if err := m.session.Machines().Start(ctx, config); err != nil {
			return err
		}
		err := m.ready(ctx)
		if err == nil || try == tries || !goesOff(err) {
			return err
		}
		if off := m.awaitOff(ctx); off != nil {
			return errors.Join(err, off)
		}
	}
}

// goesOff reports whether a command ended as on a host that stops: by a signal,
// or together with the host.
func goesOff(err error) bool {
	var exit *driver.ExitError
	return !errors.As(err, &exit) || exit.Code > 128
}

func (m Machine) awaitOff(ctx context.Context) error {
	return step.Until(ctx, func(ctx context.Context) error {
		now, err := m.session.Machines().Kept(ctx, m.config.Name, false)
		if err == nil && now.Running {
			err = fmt.Errorf("%s is stopping", m.config.Name)
		}
		return err
	}, nil)
}

// readyScript waits on the host itself. Running one command per check would cost
// the engine more than the check.
const readyScript = `i=0
until curl -sf --max-time 20 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null; do
	i=$((i+1)); [ $i -lt "$1" ] || { echo "Docker does not answer on this host" >&2; exit 1; }
	sleep 0.05
done
[ ! -d /run/systemd/system ] || [ "$(systemctl is-system-running --wait)" != stopping ] || exit 143`

func (m Machine) ready(ctx context.Context) error {
	limit := step.Limit(ctx)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("Docker on %s does not answer within %s", m.config.Name, limit))
	defer cancel()
	step.Report(ctx, "wait for its Docker", 0, 0)
	err := m.node.Exec(ctx, driver.Exec{Args: []string{"/bin/sh", "-c", readyScript, "sh", "5000"}})
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\n%s", err, strings.TrimSpace(m.session.Engine.Tail(context.WithoutCancel(ctx), m.config.Name, 20)))
}

// bootedScript exits with 143, like a stopped process, on a host that is
// stopping.
const bootedScript = `[ ! -d /run/systemd/system ] || case $(systemctl is-system-running) in
initializing|starting) exit 1;;
stopping) exit 143;;
esac
curl -sf --max-time 5 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null`

// boots reports whether a running host is booting or stopping, because a killed
// run started or stopped it. It returns false if Docker on the host is down for
// another reason.
func (m Machine) boots(ctx context.Context) bool {
	err := m.node.Exec(ctx, driver.Exec{Args: []string{"/bin/sh", "-c", bootedScript}})
	if err == nil || goesOff(err) {
		return err != nil
	}
	now, err := m.session.Machines().Kept(ctx, m.config.Name, false)
	return err == nil && time.Since(now.Started) < step.Limit(ctx)
}
