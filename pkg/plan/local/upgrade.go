package local

import (
	"context"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// readUpgrade reads the unfinished upgrade of this host. With the settings of the new version, the upgrade
// no longer holds: the run completes it, or a killed run has kept the record.
func readUpgrade(h *Host) error {
	r, err := upgrade.Read(h.Files)
	if host.IsDamaged(err) {
		h.UpgradeLost, err = upgradeLost(err), nil
	}
	if err != nil || !r.Begun() || !h.Saved.Installed() {
		return err
	}
	h.recorded = r
	if r.To.Kubernetes != h.Config.KubernetesVersion {
		h.Upgrade = r
	}
	return nil
}

// ends reports whether this run completes an upgrade. A control plane must have ended the emulation before.
func ends(h *Host) bool {
	return h.recorded.To.Kubernetes == h.Config.KubernetesVersion &&
		(h.recorded.Phase == upgrade.Finishing || h.recorded.Begun() && h.Saved.Role == Worker)
}

// OpenNext returns the host with its settings in force and another version of Kubernetes, whose images come
// from a bundle; empty: as for any run. It is Open for an upgrade.
func OpenNext(h *Host, release, bundle string) (*Host, error) {
	cfg := h.Saved.Config
	cfg.KubernetesVersion, cfg.Bundle = release, bundle
	if bundle != "" && !h.Files.Exists(bundle) && h.recorded.Bundle == bundle {
		cfg.Bundle = "" // it was loaded when the upgrade began
	}
	return Open(cfg)
}

// NewUpgrade returns the record of an upgrade to the versions of next.
func NewUpgrade(h, next *Host) upgrade.Record {
	if h.Upgrade.Begun() {
		return h.Upgrade
	}
	return upgrade.Record{
		From: h.Versions, To: next.Versions, Phase: upgrade.Emulating, Bundle: next.Config.Bundle,
		Since: time.Now().UTC().Truncate(time.Second),
	}
}

// ResolveImages is Resolve for a run that only loads images.
func ResolveImages(ctx context.Context, h *Host, role string) *Host {
	ctx = h.Limited(ctx)
	resolved := *h
	resolved.Answers = nil
	resolved.ask("registry", "reach the registry", func() error { return resolved.askRegistry(ctx) })
	if role == Worker || h.Config.Join {
		resolved.ask("control-plane", "reach the control plane", func() error { return askForBundle(ctx, &resolved) })
	}
	err := resolved.supply(ctx, role)
	resolved.Answers = append(resolved.Answers, Answer{"images", "look for the images", err, resolved.Supply.Note})
	return &resolved
}

// upgradeLost returns the problem of a damaged record. Without it, a run cannot tell whether etcd may already
// contain what the old version cannot read.
func upgradeLost(err error) error {
	return &step.Problem{
		Name: "upgrade-lost", Firm: true, Text: "the record of an unfinished upgrade is lost: " + err.Error(),
		Remedy: "copy " + upgrade.File.Path + " from another host of the same role",
	}
}

// ControlPlaneVersions returns the versions of the API server, the controller manager and the scheduler,
// which an unfinished upgrade has replaced.
func ControlPlaneVersions(h *Host) image.Versions {
	if h.Upgrade.Begun() {
		return h.Upgrade.To
	}
	return h.Versions
}

// ControlPlaneProgram returns Program for a component of the control plane.
func ControlPlaneProgram(h *Host) func(name string) string {
	if !h.Upgrade.Begun() {
		return h.Program
	}
	return func(name string) string { return image.ProgramRef(h.Upgrade.To, name) }
}

// EmulatedVersion returns the minor version that the control plane emulates, "1.36"; "" if it emulates none.
func EmulatedVersion(h *Host) string { return upgrade.Minor(h.Upgrade.Emulated()) }
