//go:build hosttest

// Package contract walks the real plan of a master on the machine it runs on,
// and holds every step against the contract of steps. It changes the machine:
// it is compiled with `go test -c -tags hosttest ./test/contract` and run on a
// test host that is thrown away.
package contract

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/upkeep"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// bundleVariable names the bundle on this host; without it, the first one
// where `offline bootstrap` keeps them.
const bundleVariable = "KUBE_BOOTSTRAP_TEST_BUNDLE"

func bundle(t *testing.T) string {
	if path := os.Getenv(bundleVariable); path != "" {
		return path
	}
	found, _ := filepath.Glob("/opt/kube-bootstrap/*.tar.zst") // the pattern is well-formed
	if len(found) == 0 {
		t.Fatalf("no bundle in /opt/kube-bootstrap: give its path in %s", bundleVariable)
	}
	return found[0]
}

// TestMain is also the program that the units of this host run, because the plan
// installs a copy of the running program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == "boot" || os.Args[1] == "agent") {
		os.Exit(unit(os.Args[1]))
	}
	os.Exit(m.Run())
}

func unit(verb string) (code int) {
	log := func(text string) { fmt.Fprintln(os.Stderr, text) }
	if verb == "agent" {
		lock := func(ctx context.Context) (context.Context, func(), error) {
			return host.LockInBackground(ctx, "/run/kube-bootstrap.lock")
		}
		log(fmt.Sprint(upkeep.Agent{Lock: lock, Log: log}.Run(context.Background())))
	}
	return 0
}

func TestEveryStepOfAMaster(t *testing.T) {
	cfg := config.Default()
	cfg.Bundle = bundle(t)
	h, err := local.Open(cfg)
	must.NoError(t, err)
	var runner step.Runner
	h = h.Resolve(t.Context(), local.ControlPlane)
	must.NoError(t, runner.Do(t.Context(), preflight.Plan(h, local.ControlPlane)))
	master := plan.ControlPlane(h)
	before := world(t)
	t.Cleanup(func() { // also after a failure: the next run wants a fresh host
		if err := errors.Join(h.Suspend(), runner.Undo(context.Background(), master)); err != nil {
			t.Error(err)
		}
		if diff := hosttest.Diff(before, world(t)); len(diff) > 0 {
			t.Errorf("the whole plan, undone, left:\n%s", strings.Join(diff, "\n"))
		}
	})
	for _, s := range inUnits(t, master.Steps()) {
		look := func() string { return world(t) }
		if kubeletRuns(t) {
			look = func() string { return settled(t) }
		}
		if s.ID == "start-etcd" {
			firstContainer(t, h)
		}
		t.Run(s.Name, func(t *testing.T) { walk(t, look, s) })
		if t.Failed() {
			return
		}
	}
}

// firstContainer runs a container in the bootstrap Docker that ends at once: what
// an engine creates for its first container stays until the engine is removed.
func firstContainer(t *testing.T, h *local.Host) {
	_, err := host.Run(t.Context(), "docker", "-H", "unix://"+bootstrapdocker.Socket, "run", "--rm", "--network",
		"host", h.Image("etcd"), "etcd", "--version")
	must.NoError(t, err)
}

// walk holds one step against the contract, and leaves it applied for those
// that follow.
func walk(t *testing.T, look func() string, s step.Step) {
	settled(t) // containerd collects in its own time what the step before no longer holds
	hosttest.Contract(t, look, s)
	if s.Apply == nil || t.Failed() {
		return
	}
	var runner step.Runner
	if err := runner.Do(t.Context(), step.Plan{{s}}); err != nil {
		t.Fatalf("apply it for the steps that follow: %v", err)
	}
}

// A kubelet starts pods, and with them changes what only the steps before it
// take back: these are held against the contract as one.
const (
	sysctls = step.ID("remember-sysctls")
	first   = kubelet.ConfigureID
	last    = kubelet.StartID
	early   = "early-"
)

// inUnits returns the steps with those of the kubelet made one. It leaves out the
// steps that start a part early: later steps do the same again and undo it.
func inUnits(t *testing.T, steps []step.Step) []step.Step {
	steps = slices.DeleteFunc(steps, func(s step.Step) bool { return strings.HasPrefix(string(s.ID), early) })
	for i := range steps { // each runs without those that it names
		steps[i].Needs, steps[i].UndoneAfter = nil, nil
	}
	find := func(id step.ID) int {
		i := slices.IndexFunc(steps, func(s step.Step) bool { return s.ID == id })
		if i < 0 {
			t.Fatalf("the plan has no step %s", id)
		}
		return i
	}
	from, to := find(first), find(last)
	one := together(steps[from:to+1], steps[find(sysctls)])
	return slices.Concat(steps[:from], []step.Step{one}, steps[to+1:])
}

// together is several steps as one. settings, applied before them, is what
// restores the kernel's; it is left as it was.
func together(steps []step.Step, settings step.Step) step.Step {
	var runner step.Runner
	var stages step.Plan
	for _, s := range steps {
		stages = append(stages, []step.Step{s})
	}
	return step.Step{
		ID: "kubelet", Name: fmt.Sprintf("%s to %s", first, last),
		Check: func(ctx context.Context) (all step.Diff, err error) {
			for _, f := range runner.Check(ctx, stages) {
				all, err = append(all, f.Diff...), errors.Join(err, f.Err)
			}
			return all, err
		},
		Apply: func(ctx context.Context) error {
			for _, s := range steps {
				if err := s.Apply(ctx); err != nil {
					return fmt.Errorf("%s: %w", s.Name, err)
				}
			}
			return nil
		},
		Undo: func(ctx context.Context) error {
			return errors.Join(runner.Undo(ctx, stages), settings.Undo(ctx), settings.Apply(ctx))
		},
	}
}

func kubeletRuns(t *testing.T) bool {
	out, err := host.Run(t.Context(), "docker", "ps", "-q", "--filter", "name=^kubelet$")
	must.NoError(t, err)
	return strings.TrimSpace(out) != ""
}

func world(t *testing.T) string {
	t.Helper()
	out, err := host.Command{
		Args: []string{"sh"}, Stdin: strings.NewReader(hosttest.WorldScript),
	}.Run(context.Background())
	if err != nil {
		t.Fatalf("print the world: %v", err)
	}
	return string(out)
}

// servingCertificate matches what the kubelet writes when its certificate is
// approved: at some time after the step that lets the agent approve it.
var servingCertificate = regexp.MustCompile(`(?m)^files: .*/var/lib/kubelet/pki/kubelet-server-.*\n`)

// settled prints a world in which things come and go, once they no longer do.
func settled(t *testing.T) string {
	t.Helper()
	return servingCertificate.ReplaceAllString(resting(t), "")
}

func resting(t *testing.T) string {
	t.Helper()
	now := world(t)
	var diff []string
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		next := world(t)
		if diff = hosttest.Diff(now, next); len(diff) == 0 {
			return now
		}
		now = next
	}
	t.Fatalf("the host does not come to rest:\n%s", strings.Join(diff, "\n"))
	return ""
}
