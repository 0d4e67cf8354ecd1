package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// binaryPath is where our program stands on every host.
const binaryPath = "/usr/local/bin/kube-bootstrap"

// Up creates the hosts and runs kube-bootstrap on each: master on the first
// one, then master --join or worker on all others at once. If everything is in
// place, Up changes nothing. A cluster that was stopped by Down is only started
// again. An existing cluster with other settings is not changed unless
// Options.Recreate is set. Events of a host carry its name.
func Up(ctx context.Context, options Options, emit func(Event)) error {
	f, err := open(options, emit)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	release, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	now, err := f.record()
	if err != nil {
		return err
	}
	if err := f.resume(ctx); err != nil {
		return err
	}
	whole, err := f.comeBack(ctx, now)
	if err != nil {
		return err
	}
	if whole {
		return f.remerge(ctx)
	}
	if err := errors.Join(f.settleHosts(ctx), f.findPrograms(ctx)); err != nil {
		return err
	}
	join := &joining{fleet: f, master: f.leader()}
	if err := f.do(ctx, append(f.hostRows(), f.clusterRows(join)...)); err != nil {
		join.revoke(ctx)
		return err
	}
	if err := f.finish(ctx, now); err != nil {
		return err
	}
	return f.remerge(ctx)
}

func (f *fleet) clusterRows(join *joining) step.Plan {
	var programs, first, joins, open []step.Step
	closing := []step.Step{join.welcome()}
	for _, m := range f.members() {
		programs = append(programs, f.program(m))
		switch {
		case m.name == join.master.name:
			first = append(first, f.verb(m, f.master))
			for _, one := range f.Manifests {
				programs = append(programs, f.put("put "+filepath.Base(one.Path)+" on "+m.name, m, one.Path, one.On, 0o600))
			}
		case m.role == Worker:
			joins = append(joins, f.verb(m, join.worker))
		default:
			joins = append(joins, f.verb(m, join.furtherMaster))
			open, closing = []step.Step{join.open()}, []step.Step{join.close(), join.welcome()}
		}
	}
	rows := step.Plan{programs, first}
	if len(joins) > 0 {
		rows = append(rows, open, joins, closing)
	}
	return rows.Compact()
}

func (f *fleet) node(m member) driver.Node { return driver.OpenDocker(f.docker, m.name) }

// program is the step that puts our own program on a host.
func (f *fleet) program(m member) step.Step {
	return f.put("put kube-bootstrap on "+m.name, m, f.Binary, binaryPath, 0o755)
}

// put is the step that copies a file of ours to a host.
func (f *fleet) put(name string, m member, from, to string, mode os.FileMode) step.Step {
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			want, err := sumOf(from)
			if err != nil {
				return nil, err
			}
			var have bytes.Buffer
			err = f.node(m).Exec(ctx, driver.Exec{Args: []string{"sha256sum", to}, Stdout: &have})
			var exit *driver.ExitError
			if err != nil && !errors.As(err, &exit) {
				return nil, err
			}
			if strings.HasPrefix(have.String(), want) {
				return nil, nil
			}
			return step.Diff{"write " + m.name + ":" + to}, nil
		},
		Apply: func(ctx context.Context) error {
			file, err := os.Open(from)
			if err != nil {
				return err
			}
			defer file.Close()
			return f.node(m).Put(ctx, to, mode, file)
		},
	}
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// verb is the step that runs a host verb. Only the kube-bootstrap on the host
// knows what is in place there, so it is asked every time.
func (f *fleet) verb(m member, run func(context.Context, member) error) step.Step {
	return step.Step{
		Name:  "run " + string(m.role) + " on " + m.name,
		Waits: true,
		Check: func(context.Context) (step.Diff, error) {
			return step.Diff{"run kube-bootstrap " + string(m.role) + " on " + m.name}, nil
		},
		Apply: func(ctx context.Context) error { return run(ctx, m) },
	}
}

func (f *fleet) master(ctx context.Context, m member) error {
	args := append([]string{"master", "--progress", "json"}, f.bundleArgs()...)
	if f.alone() {
		args = append(args, "--no-dedicated")
	}
	return f.relay(ctx, m, slices.Concat(args, f.MasterArgs, m.spec.Args), nil)
}

// alone reports whether there is no worker: control planes take pods then.
func (f *fleet) alone() bool {
	return !slices.ContainsFunc(f.members(), func(m member) bool { return m.role == Worker })
}

func (f *fleet) bundleArgs() []string {
	if f.Bundle == "" && !f.shipped {
		return nil
	}
	if f.programs != "" {
		return []string{"--bundle", bundleDir + "/" + programsName(f.programs), "--bundle-base", bundleDir + "/" + bundleName}
	}
	return []string{"--bundle", bundleDir + "/" + bundleName}
}

// busy is the exit code of a program that finds another run on its host. A run
// of ours that was killed leaves its program on the host behind, which goes on
// for a while.
const busy = 4

// relay runs our program on a host, once nothing else does.
func (f *fleet) relay(ctx context.Context, m member, args, env []string) error {
	var failed error
	err := step.Until(ctx, func(context.Context) error { // the limit applies to the wait for another run, not to the run itself
		var exit *driver.ExitError
		failed = f.runProgram(ctx, m, args, env)
		if errors.As(failed, &exit) && exit.Code == busy {
			return failed
		}
		return nil
	}, nil)
	return errors.Join(err, failed)
}

// runProgram runs our program on a host and hands its events on.
func (f *fleet) runProgram(ctx context.Context, m member, args, env []string) error {
	relay := &relay{emit: func(e step.Event) { f.emit(Event{Host: m.name, Event: e}) }}
	err := f.node(m).Exec(ctx, driver.Exec{Args: append([]string{binaryPath}, args...), Env: env, Stderr: relay})
	relay.flush()
	var exit *driver.ExitError
	if errors.As(err, &exit) && exit.Code != busy {
		return relay.explain(exit)
	}
	return err
}
