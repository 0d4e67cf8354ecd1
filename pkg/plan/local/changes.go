package local

import (
	"bytes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
)

// Changing reports whether the settings of this run differ from those in force.
func (h *Host) Changing() bool {
	if !h.Saved.Installed() {
		return false
	}
	now, err := file.Marshal(h.Config)
	old, oldErr := file.Marshal(h.Saved.Config)
	return err == nil && oldErr == nil && !bytes.Equal(now, old)
}

// Upgrading reports whether the versions of this run differ from those in
// force. A failed run may then have started newer components, and etcd cannot
// read its data with an older version.
func (h *Host) Upgrading() bool {
	was, now := h.Saved.Config, h.Config
	return h.Saved.Installed() && (was.KubernetesVersion != now.KubernetesVersion || was.EtcdVersion != now.EtcdVersion)
}
