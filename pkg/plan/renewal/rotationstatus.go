package renewal

import (
	"context"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rollout"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Rotates returns the problems that keep a rotation from beginning or continuing
// [unfinished] [rotation-under-way] [host-away].
func Rotates(ctx context.Context, h *local.Host, subject string) error {
	if err := Renews(h.Files); err != nil {
		return err
	}
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	other := func(r rotation.Rotation) bool { return r.Subject != subject }
	p := parts.InForce(h)
	if err := ended(ctx, storeOf(p.Cluster), other); err != nil {
		return err
	}
	names, err := followers(p.Etcd, subject)(ctx)
	if err != nil {
		return err
	}
	away, err := p.Cluster.Node("").NotReady(ctx, names)
	if err != nil || len(away) == 0 {
		return err
	}
	return hostAway(away, "are not Ready")
}

// hostAway is the problem that a rotation has to wait for hosts [host-away].
func hostAway(names []string, what string) *step.Problem {
	list := strings.Join(names, ", ")
	return &step.Problem{
		Name: "host-away", Firm: true, Text: "hosts " + list + " " + what,
		Remedy: "start them and their agent, or, if one is gone for good, run `kube-bootstrap forget NAME`; " +
			"then run the same command again",
	}
}

func followers(own parts.Etcd, subject string) rollout.Hosts {
	if subject == rotation.Authorities {
		return nodeNames
	}
	return own.ControlPlaneNames
}

// NotRotating returns the problem that a rotation is under way.
func NotRotating(ctx context.Context) error {
	return ended(ctx, State, func(rotation.Rotation) bool { return true })
}

// Joinable returns the problem that no host can join now, because its cluster
// replaces the certificate authorities by which the host would know it.
func Joinable(ctx context.Context) error {
	return ended(ctx, State, func(r rotation.Rotation) bool { return r.Subject == rotation.Authorities })
}

// ended returns the problem that a rotation is under way which must end first
// [rotation-under-way].
func ended(ctx context.Context, store rotation.StateStore, must func(rotation.Rotation) bool) error {
	now, err := store.Read(ctx)
	if err != nil || now == nil || !must(*now) {
		return err
	}
	return &step.Problem{
		Name: "rotation-under-way", Firm: true,
		Text:   "a rotation of the " + rotation.Title(now.Subject) + " is under way",
		Remedy: "finish it first with `kube-bootstrap certs rotate` and --" + now.Subject,
	}
}

// RotationStatus is a rotation that is under way.
type RotationStatus struct {
	Subject  string   `json:"subject"`
	Phase    string   `json:"phase"`
	WaitsFor []string `json:"waitsFor,omitempty"` // hosts
	// Until is when the old key can be dropped, if that is a matter of time.
	Until time.Time `json:"until,omitzero"`
}

// UnderWay returns the rotation under way, nil if there is none or no API server answers.
func UnderWay(ctx context.Context, h *local.Host) *RotationStatus {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	now, err := State.Read(ctx)
	if err != nil || now == nil {
		return nil
	}
	status := &RotationStatus{Subject: now.Subject, Phase: now.Phase.Of(now.Subject), Until: now.Until}
	if names, err := followers(parts.InForce(h).Etcd, now.Subject)(ctx); err == nil {
		status.WaitsFor, _ = State.Notes().Behind(ctx, now.Rollout(), names)
	}
	return status
}

func (s RotationStatus) String() string {
	who := "control planes"
	if s.Subject == rotation.Authorities {
		who = "hosts"
	}
	text := "a rotation of the " + rotation.Title(s.Subject) + " is under way: the " + who + " " + s.Phase
	if len(s.WaitsFor) > 0 {
		text += ", " + strings.Join(s.WaitsFor, " and ") + " not yet"
	}
	if s.Until.After(time.Now()) {
		text += "; the old key can be dropped after " + s.Until.Local().Format(time.DateTime)
		return text + " with `kube-bootstrap certs rotate` and --" + s.Subject
	}
	return text + "; if the command was interrupted, finish it with `kube-bootstrap certs rotate` and --" + s.Subject
}
