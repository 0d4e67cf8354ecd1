// Package e2e builds Kubernetes' own end-to-end tests, and the images that they
// use.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Programs are the end-to-end tests of a Kubernetes version, made from its
// source.
type Programs struct {
	Test   string // path of the program that contains all tests
	Ginkgo string // path of the program that runs it in parallel
}

// Event is one event that the test program writes when a test starts or ends.
// suiteevents_test.go.tmpl, in the recipes of pkg/image, writes it.
type Event struct {
	Kind    string  `json:"kind"` // "start" or "end"
	Test    string  `json:"test"`
	State   string  `json:"state"` // "passed", "skipped"; every other state is a failure
	Seconds float64 `json:"seconds"`
	Message string  `json:"message"` // of a failure
	At      string  `json:"at"`      // file:line of a failure
}

// EventsVariable is the environment variable with the path of the event file.
const EventsVariable = "KUBE_BOOTSTRAP_TEST_EVENTS"

// Compile compiles the tests of a version, or takes them from the cache.
func Compile(ctx context.Context, b *image.Builder, v image.Versions, arch string) (Programs, error) {
	part, err := b.Compile(ctx, v.Recipe("suite"), arch)
	return Programs{Test: filepath.Join(part.Dir, "e2e.test"), Ginkgo: filepath.Join(part.Dir, "ginkgo")}, err
}

// Tests lists the tests that the program would run with these arguments.
func (p Programs) Tests(ctx context.Context, args ...string) ([]string, error) {
	file, err := os.CreateTemp("", "kube-bootstrap-tests-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	command := host.Command{Args: append([]string{p.Test, "--ginkgo.dry-run", "--ginkgo.no-color"}, args...), Env: []string{EventsVariable + "=" + file.Name()}}
	if _, err := command.Run(ctx); err != nil {
		return nil, fmt.Errorf("list the tests: %w", err)
	}
	var names []string
	for decoder := json.NewDecoder(file); decoder.More(); {
		var e Event
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("list the tests: %w", err)
		}
		if e.Kind == "start" {
			names = append(names, e.Test)
		}
	}
	return names, nil
}
