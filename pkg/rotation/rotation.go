// Package rotation keeps the state of a rotation: the replacement, without an
// outage, of a key that all control planes have, or of the certificate
// authorities. The state is a Secret of the cluster, so a command that was
// interrupted continues where it stopped:
//
//	phase    what a control plane does           what the command does when all control planes do so
//	accept   it also accepts the new key         sets the next phase
//	use      it uses the new key, accepts both   replaces what depends on the old key, then sets the next phase
//	drop     it no longer accepts the old key    removes the state
//
// The command only sets the phases. The agent of each control plane follows, and
// notes the phase that it has reached in an annotation of its node. Workers trust
// the authorities too. Their agents follow each phase after the control planes, and
// read it from a ConfigMap, because the Secret contains the new keys.
package rotation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/rollout"
)

// Phase is a state that all control planes reach before the next one begins.
type Phase int

// The phases, in their order.
const (
	Accept Phase = iota + 1
	Use
	Drop
)

// Of states what a host does in a phase of the rotation of a subject: "accept the
// new key".
func (p Phase) Of(subject string) string {
	title := Title(subject)
	what := title[strings.LastIndex(title, " ")+1:]
	switch p {
	case Accept:
		return "accept the new " + what
	case Use:
		return "use the new " + what
	}
	return "drop the old " + what
}

// Authorities is the subject of a rotation that workers follow too.
const Authorities = "ca"

// Rotation is the state of a rotation.
type Rotation struct {
	ID      string `json:"id"`      // of this rotation, and of no other: its beginning in UTC, as time.RFC3339
	Subject string `json:"subject"` // what is replaced: "encryption-key", "ca"
	Phase   Phase  `json:"phase"`
	New     []byte `json:"new"` // the new key, in the form of its subject
	// Until is the time after which nothing uses the old key; zero if unknown or not
	// time-dependent.
	Until time.Time `json:"until,omitzero"`

	version string // of the Secret that was read
}

func (r Rotation) String() string {
	return fmt.Sprintf("rotate the %s: %s", Title(r.Subject), r.Phase.Of(r.Subject))
}

// Rollout returns the phase that each host notes once it has reached it.
func (r Rotation) Rollout() rollout.OperationPhase {
	return rollout.OperationPhase{ID: r.ID, Number: int(r.Phase)}
}

// Title returns a subject in words.
func Title(subject string) string {
	if subject == Authorities {
		return "certificate authorities"
	}
	return strings.ReplaceAll(subject, "-", " ")
}

// Order returns the keys that a control plane has in a phase: first the
// key that it uses, then the keys that it accepts. have are the previous keys.
func Order[K comparable](p Phase, have []K, new K) []K {
	old := slices.DeleteFunc(slices.Clone(have), func(k K) bool { return k == new })
	switch p {
	case Accept:
		return append(old, new)
	case Use:
		return append([]K{new}, old...)
	}
	return []K{new}
}
