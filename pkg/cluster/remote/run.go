// Package remote runs kube-bootstrap on the nodes of a cluster and copies files
// to them. It needs only access to a node: Exec, Put and Get.
//
//	kube-bootstrap on a node --progress json -> stderr -> relay -> session.Event
package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// busy is the exit code of kube-bootstrap while another run is active on its
// host, for example a run that continues after `cluster up` was killed.
const busy = 4

// Run runs kube-bootstrap on a node, after other runs there, and emits its events.
func Run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	var failed error
	// the limit applies to the wait for another run, not to the run itself
	err := step.Until(ctx, func(context.Context) error {
		failed = run(ctx, s, node, args, env)
		if exit, ok := errors.AsType[*access.ExitError](failed); ok && exit.Code == busy {
			return failed
		}
		return nil
	}, nil)
	return errors.Join(err, failed)
}

func run(ctx context.Context, s *session.Session, node string, args, env []string) error {
	relay := newRelay(func(e step.Event) { s.Emit(session.HostEvent{Host: node, Event: e}) })
	args = slices.Concat([]string{s.Provider.ProgramPath()}, args, []string{"--progress", "json"})
	err := s.Node(node).Exec(ctx, host.Command{Args: args, Env: env, Stderr: relay})
	relay.Flush()
	if exit, ok := errors.AsType[*access.ExitError](err); ok && exit.Code != busy {
		return relay.explain(exit)
	}
	return err
}

// relay parses the stderr of kube-bootstrap on a host into events. It keeps the
// errors and the last other lines, which explain a failure.
type relay struct {
	Lines
	emit   func(step.Event)
	failed []error  // errors of the host's steps
	other  []string // lines that are no events
}

func newRelay(emit func(step.Event)) *relay {
	r := &relay{emit: emit}
	r.Do = r.line
	return r
}

func (r *relay) line(text []byte) {
	var e step.Event
	if err := json.Unmarshal(text, &e); err != nil || e.Kind == "" {
		if plain := strings.TrimSpace(string(text)); plain != "" {
			r.other = append(r.other[max(0, len(r.other)-LastLines+1):], plain)
		}
		return
	}
	if e.Kind == step.Result {
		return // the exit code says the same
	}
	known := func(err error) bool { return err.Error() == e.Err.Error() }
	if e.Kind == step.Failed && e.Err != nil && !slices.ContainsFunc(r.failed, known) {
		r.failed = append(r.failed, e.Err)
	}
	r.emit(e)
}

// refuses is the exit code of a host command that changed nothing, because of problems.
const refuses = 3

// Refused lists the problems that a host must solve before it can join a cluster.
type Refused struct {
	Host     string
	Problems []*step.Problem
}

func (r *Refused) Error() string {
	var all []string
	for _, p := range r.Problems {
		all = append(all, p.Error())
	}
	return r.Host + ": " + strings.Join(all, "; ")
}

// explain returns the error that kube-bootstrap on the host reported.
func (r *relay) explain(exit *access.ExitError) error {
	if found := step.Problems(errors.Join(r.failed...)); exit.Code == refuses && len(found) > 0 {
		return &Refused{exit.Node, found}
	}
	if len(r.failed) > 0 {
		return fmt.Errorf("%s: %s", exit.Node, strings.ReplaceAll(errors.Join(r.failed...).Error(), "\n", "; "))
	}
	if len(r.other) > 0 {
		return fmt.Errorf("%s: %s", exit.Node, strings.Join(r.other, "\n"))
	}
	return exit
}

// HostStatus is the status of one host of a cluster.
type HostStatus struct {
	Name   string          `json:"name"`
	Role   topology.Role   `json:"role"`
	Addr   netip.Addr      `json:"address"`
	State  string          `json:"state"` // of the container: "running", "exited"
	Image  string          `json:"image"`
	Report json.RawMessage `json:"report,omitempty"` // of `kube-bootstrap status -o json` on it
	Error  string          `json:"error,omitempty"`  // why there is no report
}

// StatusReport is what commands about a cluster read in the report of a host.
type StatusReport struct {
	UpToDate bool
	Programs map[string]string     // that differ from the release, with their versions
	Etcd     []struct{ IP string } // the members
	Quorum   string                // the problem that too few members are up
}

// Read parses the report. It returns an error if there is none.
func (h HostStatus) Read() (r StatusReport, err error) {
	err = json.Unmarshal(h.Report, &r)
	return r, err
}

// Statuses returns the status of each node, in the same order.
func Statuses(ctx context.Context, s *session.Session, nodes []topology.NodeState) []HostStatus {
	all := make([]HostStatus, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() { all[i] = Status(ctx, s, n) })
	}
	wg.Wait()
	return all
}

// Status returns the status of a node, with the report of kube-bootstrap if the node runs.
func Status(ctx context.Context, s *session.Session, n topology.NodeState) HostStatus {
	status := HostStatus{Name: n.Name, Role: n.Role, Addr: n.Addr, State: n.State, Image: n.Image}
	if !n.Running() || n.Role == topology.Bare {
		return status
	}
	// The command exits with an error if something is missing, and writes a report nevertheless.
	out, err := answered(ctx, func(ctx context.Context) (string, error) {
		return access.Output(ctx, s.Node(n.Name), s.Provider.ProgramPath(), "status", "-o", "json")
	})
	if json.Valid([]byte(out)) {
		status.Report = json.RawMessage(out)
	} else if err != nil {
		status.Error = err.Error()
	}
	return status
}

// reportLimit is the time for the report of a node. After it, the status shows the reports of the
// other nodes.
const reportLimit = time.Minute

// answered returns the answer of a node, or an error after reportLimit.
func answered(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	limited, cancel := step.Limited(step.WithLimit(ctx, reportLimit))
	defer cancel()
	out, err := ask(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return "", fmt.Errorf("no report within %s", reportLimit)
	}
	return out, err
}
