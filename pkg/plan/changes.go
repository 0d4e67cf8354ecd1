package plan

import (
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settingsProblem names the settings that were given a value which they cannot
// have on this host any more, or not in the cluster that it joins.
func (h *Host) settingsProblem(context.Context) error {
	var problems []*step.Problem
	for _, d := range h.refused {
		whose, remedy := "this host was set up with", "leave it out, or take this host out with `kube-bootstrap turndown` and set it up again"
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

// keepsAddress reports whether this host is known by its address for good, as a
// control plane is: to etcd, by its certificates, and to the other hosts.
func (h *Host) keepsAddress() bool { return h.saved.Role == Master }

// Changing reports whether this run has other settings than those in force.
func (h *Host) Changing() bool {
	if !h.installed() {
		return false
	}
	now, err := h.Config.Marshal()
	old, oldErr := h.saved.Config.Marshal()
	return err == nil && oldErr == nil && !bytes.Equal(now, old)
}
