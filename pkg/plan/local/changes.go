package local

import (
	"bytes"
)

// Changing reports whether the settings of this run differ from those in force.
func (h *Host) Changing() bool {
	if !h.Installed() {
		return false
	}
	now, err := h.Config.Marshal()
	old, oldErr := h.Saved.Config.Marshal()
	return err == nil && oldErr == nil && !bytes.Equal(now, old)
}

// Upgrading reports whether the versions of this run differ from those in
// force. A failed run may then have started newer components, and etcd cannot
// read its data with an older version.
func (h *Host) Upgrading() bool {
	was, now := h.Saved.Config, h.Config
	return h.Installed() && (was.KubernetesVersion != now.KubernetesVersion || was.EtcdVersion != now.EtcdVersion)
}
