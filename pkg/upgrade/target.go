package upgrade

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Target returns the release that an upgrade from a release leads to. wanted may be a release, a minor
// version, or empty for the newest patch of the next minor version [upgrade-version].
func Target(from, wanted string) (string, error) {
	_, now, err := catalog.Kubernetes(from)
	if err != nil {
		return "", fmt.Errorf("version %q: %w", from, err)
	}
	if wanted == "" {
		next, ok := catalog.Find(now.Number + 1)
		if !ok {
			return "", refused(fmt.Sprintf("this program supports no version of Kubernetes after %s", now),
				"use a newer kube-bootstrap")
		}
		return next.Patch, nil
	}
	release, _, err := catalog.Kubernetes(wanted)
	if err != nil {
		return "", refused(fmt.Sprintf("--to %s %v", wanted, err), "give another --to")
	}
	if err := catalog.CheckUpgrade(from, release); err != nil {
		return "", refused(err.Error(), "upgrade to the next minor version with --to, or install a newer patch with "+
			"`kube-bootstrap master` and `kube-bootstrap worker`")
	}
	return release, nil
}

func refused(text, remedy string) error {
	return &step.Problem{Name: "upgrade-version", Firm: true, Text: text, Remedy: remedy}
}

// Next returns the problem that `apply` cannot continue, because another upgrade is unfinished
// [upgrade-unfinished].
func (r Record) Next(to string) error {
	switch {
	case !r.Begun():
		return nil
	case r.Phase == Finishing:
		return unfinished(r, "run `kube-bootstrap upgrade finish`")
	case r.To.Kubernetes != to:
		return unfinished(r, "finish it or take it back first")
	}
	return nil
}

// Returnable returns the problem that there is nothing to take back, or that it is too late
// [upgrade-none, upgrade-unfinished].
func (r Record) Returnable() error {
	switch {
	case !r.Begun():
		return None()
	case r.Phase == Finishing:
		return unfinished(r, "the cluster may contain objects of the new version already, so only a backup from "+
			"before the upgrade leads back; run `kube-bootstrap upgrade finish`")
	}
	return nil
}

func unfinished(r Record, remedy string) error {
	return &step.Problem{Name: "upgrade-unfinished", Firm: true, Text: r.String(), Remedy: remedy}
}

// None returns the problem that there is no unfinished upgrade [upgrade-none].
func None() error {
	return &step.Problem{Name: "upgrade-none", Firm: true, Text: "this host has no unfinished upgrade",
		Remedy: "run `kube-bootstrap upgrade apply` to begin one"}
}
