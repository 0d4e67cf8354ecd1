package renewal

import (
	"context"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Rotates returns the problems that keep a rotation from beginning or continuing
// [unfinished] [rotation-under-way] [host-away].
func Rotates(ctx context.Context, h *local.Host, subject string) error {
	if err := Renews(h); err != nil {
		return err
	}
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	now, err := rotation.Store{API: parts.AnyServer(h, controlplane.AdminConf)}.Read(ctx)
	if err != nil {
		return err
	}
	if now != nil && now.Subject != subject {
		return waitFor(*now)
	}
	names, err := followers(h, subject)(ctx)
	if err != nil {
		return err
	}
	away, err := parts.Anywhere(h, "").NotReady(ctx, names)
	if err != nil || len(away) == 0 {
		return err
	}
	return hostAway(away, "are not Ready")
}

// NotRotating returns the problem that a rotation is under way.
func NotRotating(ctx context.Context, h *local.Host) error {
	now, err := State.Read(ctx)
	if err != nil || now == nil {
		return err
	}
	return waitFor(*now)
}

// Joinable returns the problem that no host can join now, because its cluster
// replaces the certificate authorities by which the host would know it.
func Joinable(ctx context.Context, h *local.Host) error {
	now, err := State.Read(ctx)
	if err != nil || now == nil || now.Subject != rotation.Authorities {
		return err
	}
	return waitFor(*now)
}

// waitFor is the problem of what must wait for the end of a rotation
// [rotation-under-way].
func waitFor(now rotation.Rotation) *step.Problem {
	return &step.Problem{
		Name: "rotation-under-way", Firm: true, Text: "a rotation of the " + rotation.Title(now.Subject) + " is under way",
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

// UnderWay returns the rotation that is under way. It returns nil if there is none,
// or if no API server answers.
func UnderWay(ctx context.Context, h *local.Host) *RotationStatus {
	ctx, cancel := step.Checking(h.Limited(ctx))
	defer cancel()
	now, err := State.Read(ctx)
	if err != nil || now == nil {
		return nil
	}
	status := &RotationStatus{Subject: now.Subject, Phase: now.Phase.Of(now.Subject), Until: now.Until}
	if names, err := followers(h, now.Subject)(ctx); err == nil {
		status.WaitsFor, _ = State.Behind(ctx, *now, names)
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
		return text + "; the old key can be dropped after " + s.Until.Local().Format(time.DateTime) + " with `kube-bootstrap certs rotate` and --" + s.Subject
	}
	return text + "; if the command was interrupted, finish it with `kube-bootstrap certs rotate` and --" + s.Subject
}
