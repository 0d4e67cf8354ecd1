package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settingsProblem lists the given settings that cannot change on this host, or
// that differ from those of the cluster that the host joins.
func settingsProblem(_ context.Context, h request) error {
	return host.Each(h.Refused, func(d config.Difference) error {
		whose := "this host was set up with"
		remedy := "leave it out, or run `kube-bootstrap turndown` and set this host up again"
		if d.Shared {
			whose, remedy = "the cluster has", "leave it out, as only a new cluster can have another value"
		}
		return &step.Problem{
			Name: d.Flag, Firm: true, Remedy: remedy,
			Text: fmt.Sprintf("%s: %s (from %s), but %s %s",
				d.Field, cmp.Or(d.Given, "nothing"), d.From, whose, cmp.Or(d.InForce, "none")),
		}
	})
}

func roleProblem(_ context.Context, h request) error {
	if h.Saved.Installed() && h.Saved.Role != h.role {
		return &step.Problem{Name: "role", Text: fmt.Sprintf("this host is already a %s", h.Saved.Role),
			Remedy: "run `kube-bootstrap turndown` first to make it a " + h.role}
	}
	if h.Files.Exists(local.RestoringFile) && !h.Restoring {
		return &step.Problem{Name: "restore-unfinished", Firm: true,
			Text:   "a restore of a backup was interrupted on this host",
			Remedy: "run the same `kube-bootstrap restore` again, or `kube-bootstrap turndown`"}
	}
	if h.Files.Exists(local.RecoveringFile) && !h.Recovering {
		return &step.Problem{Name: "recovery-unfinished", Firm: true,
			Text:   "a recovery was interrupted on this host",
			Remedy: "run `kube-bootstrap master --recover` again, or `kube-bootstrap turndown`"}
	}
	if h.role == local.ControlPlane && h.Config.Join && h.Saved.Role == local.ControlPlane && !h.Saved.Config.Join {
		return &step.Problem{Name: "role", Text: "--join: this host is the first control plane of another cluster",
			Remedy: "remove --join to repair this host, or run `kube-bootstrap turndown` first"}
	}
	entries, err := os.ReadDir(h.Files.Path("/etc/kubernetes/manifests"))
	if !h.Saved.Installed() && !errors.Is(err, fs.ErrNotExist) && (err != nil || len(entries) > 0) {
		return &step.Problem{Name: "role", Text: "/etc/kubernetes/manifests contains static pods of another cluster",
			Remedy: "remove that cluster first (`kubeadm reset`, if kubeadm made it)"}
	}
	return nil
}

// identityProblem returns a problem if the keys of the cluster were lost,
// because a control plane must not create new ones.
func identityProblem(_ context.Context, h request) error {
	if h.role != local.ControlPlane {
		return nil
	}
	return h.parts.ControlPlane.PKI.IdentityProblem()
}

// taintProblem refuses changed taints on a worker, because the API server
// does not allow a kubelet to change the taints of its registered node. Once
// an administrator has changed the node, the worker accepts the setting.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/plugin/pkg/admission/noderestriction/admission.go#L594-L598
func taintProblem(ctx context.Context, h request) error {
	before, want := h.Saved.Config.NodeTaints, h.Config.NodeTaints
	if h.role != local.Worker || !h.Saved.Installed() || slices.Equal(before, want) {
		return nil
	}
	has, known, err := parts.ObjectOf(h.Config.HostName, kubelet.Kubeconfig).Taints(ctx)
	if err != nil || !known {
		return err // a new node registers with the taints
	}
	add, remove := node.TaintChanges(has, before, want)
	if len(add)+len(remove) == 0 {
		return nil
	}
	var words []string
	for _, t := range add {
		words = append(words, t.String())
	}
	for _, t := range remove {
		words = append(words, t.String()+"-")
	}
	return &step.Problem{
		Name: "node-taint",
		Text: fmt.Sprintf("nodeTaints: %q, and %q before: a worker cannot change the taints of its node",
			config.Joined(want), config.Joined(before)),
		Remedy: fmt.Sprintf("run `kubectl taint node --overwrite %s %s` as an administrator, then this command again",
			h.Config.HostName, strings.Join(words, " ")),
	}
}
