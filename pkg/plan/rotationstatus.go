package plan

import (
	"context"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Rotates returns the problems that keep a rotation from beginning or continuing
// [unfinished] [rotation-under-way] [host-away].
func (h *Host) Rotates(ctx context.Context, subject string) error {
	if err := h.Renews(); err != nil {
		return err
	}
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	now, err := rotation.Store{API: h.anyServer(controlplane.AdminConf)}.Read(ctx)
	if err != nil {
		return err
	}
	if now != nil && now.Subject != subject {
		return underWay(*now)
	}
	names, err := h.followers(subject)(ctx)
	if err != nil {
		return err
	}
	away, err := h.anywhere("").NotReady(ctx, names)
	if err != nil || len(away) == 0 {
		return err
	}
	return hostAway(away, "are not Ready")
}

// NotRotating returns the problem that a rotation is under way.
func (h *Host) NotRotating(ctx context.Context) error {
	now, err := rotations.Read(ctx)
	if err != nil || now == nil {
		return err
	}
	return underWay(*now)
}

// Joinable returns the problem that no host can join now, because its cluster
// replaces the certificate authorities by which the host would know it.
func (h *Host) Joinable(ctx context.Context) error {
	now, err := rotations.Read(ctx)
	if err != nil || now == nil || now.Subject != rotation.Authorities {
		return err
	}
	return underWay(*now)
}

// underWay is the problem of what must wait for the end of a rotation
// [rotation-under-way].
func underWay(now rotation.Rotation) *step.Problem {
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

// RotationStatus returns nil if no rotation is under way, or if no API server
// answers.
func (h *Host) RotationStatus(ctx context.Context) *RotationStatus {
	ctx, cancel := step.Checking(h.limited(ctx))
	defer cancel()
	now, err := rotations.Read(ctx)
	if err != nil || now == nil {
		return nil
	}
	status := &RotationStatus{Subject: now.Subject, Phase: now.Phase.Of(now.Subject), Until: now.Until}
	if names, err := h.followers(now.Subject)(ctx); err == nil {
		status.WaitsFor, _ = rotations.Behind(ctx, *now, names)
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
