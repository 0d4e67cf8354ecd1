// Package upgrade contains what is specific to an upgrade of Kubernetes to the next minor version: the
// record of an unfinished upgrade on a host, and what blocks one. An upgrade has two steps:
//
//	apply    the API server, the controller manager and the scheduler are those of the new version, and
//	         emulate the old one; the kubelet and etcd stay as they are. rollback returns to the old programs.
//	finish   first the emulation ends; etcd, the kubelet and the addons of the new version follow
package upgrade

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Phase is how far the upgrade of a host has come.
type Phase string

const (
	// Emulating is the phase between apply and finish. The host can return to the old version.
	Emulating Phase = "emulating"
	// Finishing is the phase of a host that no longer emulates the old version, and that does not have
	// etcd and the kubelet of the new version yet.
	Finishing Phase = "finishing"
)

// Record is an unfinished upgrade of a host. The zero Record is none.
type Record struct {
	From   image.Versions `json:"from"`
	To     image.Versions `json:"to"`
	Phase  Phase          `json:"phase"`
	Bundle string         `json:"bundle,omitempty"` // that the images of To come from; empty: as for any run
	Since  time.Time      `json:"since"`
}

// File is the record of a host.
var File = host.Record[Record]{Path: host.StateDir + "/upgrade.json", Valid: Record.valid}

func (r Record) valid() error {
	if r.From.Kubernetes == "" || r.To.Kubernetes == "" {
		return errors.New("it names no versions")
	}
	if r.Phase != Emulating && r.Phase != Finishing {
		return fmt.Errorf("phase %q is unknown", r.Phase)
	}
	return nil
}

// Read returns the unfinished upgrade of this host, the zero Record if there is none.
func Read(files host.Files) (Record, error) {
	r, err := File.Read(files)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	return r, err
}

// Begun reports whether there is an unfinished upgrade.
func (r Record) Begun() bool { return r.To.Kubernetes != "" }

// Emulated returns the version that the components of the control plane emulate, "v1.36.3"; "" if they
// emulate none.
func (r Record) Emulated() string {
	if r.Phase != Emulating {
		return ""
	}
	return r.From.Kubernetes
}

// String returns what `status` says about an unfinished upgrade.
func (r Record) String() string {
	text := fmt.Sprintf("an upgrade of Kubernetes from %s to %s is unfinished since %s: ", r.From.Kubernetes,
		r.To.Kubernetes, r.Since.Local().Format(time.DateTime))
	if r.Phase == Emulating {
		return text + "`kube-bootstrap upgrade finish` completes it, `kube-bootstrap upgrade rollback` takes it back"
	}
	return text + "`kube-bootstrap upgrade finish` completes it"
}

// Minor returns the minor version of a release as --emulated-version takes it: "1.36" for "v1.36.3".
func Minor(release string) string {
	_, m, err := catalog.Kubernetes(release)
	if release == "" || err != nil {
		return ""
	}
	return m.String()
}
