// Package rollout has all hosts of a cluster reach a phase of an operation, and names
// the hosts that have not reached it. Only then does the next phase begin:
//
//	command            publishes the phase, and waits for all hosts
//	agent of a host    reaches the phase, and notes it in an annotation of its node
package rollout

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// OperationPhase is a phase of an operation on all hosts.
type OperationPhase struct {
	// ID is that of the operation, and of no other: its beginning in UTC, as time.RFC3339.
	ID     string
	Number int // phases are numbered in their order
}

// String returns the text that a node has once its host has reached the phase.
func (p OperationPhase) String() string { return fmt.Sprintf("%s/%d", p.ID, p.Number) }

// before reports whether a noted phase is a later one, or of a later operation. The IDs are
// as long as one another, so they sort as their times.
func (p OperationPhase) before(noted string) bool {
	id, text, _ := strings.Cut(noted, "/")
	number, err := strconv.Atoi(text)
	return err == nil && (p.ID < id || p.ID == id && p.Number < number)
}

// Hosts returns the names of the hosts that must reach a phase.
type Hosts func(context.Context) ([]string, error)

// HostGroup are hosts that must reach the phases of an operation together.
type HostGroup struct {
	Hosts       Hosts
	Annotations Annotations
}

// Behind returns the hosts that have not reached a phase.
func (g HostGroup) Behind(ctx context.Context, p OperationPhase) ([]string, error) {
	all, err := g.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	return g.Annotations.Behind(ctx, p, all)
}

// BehindError lists the hosts that have not reached a phase in time.
type BehindError struct{ Hosts []string }

func (e *BehindError) Error() string { return "wait for " + strings.Join(e.Hosts, ", ") }

// Await waits until all hosts have reached the phase that current returns. At the limit of
// ctx, it fails with a BehindError.
func (g HostGroup) Await(ctx context.Context, current func(context.Context) (OperationPhase, error)) error {
	var late *BehindError
	err := step.Until(ctx, func(ctx context.Context) error {
		now, err := current(ctx)
		if err != nil {
			return err
		}
		names, err := g.Behind(ctx, now)
		if err != nil || len(names) == 0 {
			return err
		}
		late = &BehindError{names}
		return late
	}, nil)
	if err != nil && ctx.Err() == nil && late != nil {
		return late
	}
	return err
}
