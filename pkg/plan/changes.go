package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settingsProblem lists the given settings that cannot change on this host, or
// that differ from those of the cluster that the host joins.
func (h *Host) settingsProblem(context.Context) error {
	var problems []*step.Problem
	for _, d := range h.refused {
		whose, remedy := "this host was set up with", "leave it out, or run `kube-bootstrap turndown` and set this host up again"
		if d.Shared {
			whose, remedy = "the cluster has", "leave it out, as only a new cluster can have another value"
		}
		problems = append(problems, &step.Problem{
			Name: d.Flag, Firm: true, Remedy: remedy,
			Text: fmt.Sprintf("%s: %s (from %s), but %s %s", d.Field, cmp.Or(d.Given, "nothing"), d.From, whose, cmp.Or(d.InForce, "none")),
		})
	}
	return joinProblems(problems)
}

// keepsAddress reports whether the address of this host cannot change. This
// is so on a control plane, because etcd, its certificates and the other
// hosts refer to the address.
func (h *Host) keepsAddress() bool { return h.saved.Role == Master }

// Upgrading reports whether the versions of this run differ from those in
// force. A failed run may then have started newer components, and etcd cannot
// read its data with an older version.
func (h *Host) Upgrading() bool {
	was, now := h.saved.Config, h.Config
	return h.installed() && (was.KubernetesVersion != now.KubernetesVersion || was.EtcdVersion != now.EtcdVersion)
}

// Changing reports whether the settings of this run differ from those in force.
func (h *Host) Changing() bool {
	if !h.installed() {
		return false
	}
	now, err := h.Config.Marshal()
	old, oldErr := h.saved.Config.Marshal()
	return err == nil && oldErr == nil && !bytes.Equal(now, old)
}
