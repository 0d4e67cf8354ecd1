package plan

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// rotations is the state of a rotation as the agent of a control plane reads it.
var rotations = rotation.Store{API: kube.Kubeconfig(controlplane.AgentConf)}

// followRotation is the step with which the agent of a host reaches the phase of
// the rotation that is under way.
func (h *Host) followRotation() step.Step {
	if h.saved.Role != Master {
		return h.followTrust()
	}
	return step.Step{
		Name: "follow a rotation",
		Check: func(ctx context.Context) (step.Diff, error) {
			r, err := h.toFollow(ctx)
			if err != nil || r == nil {
				return nil, kube.NoAnswer(err)
			}
			return step.Diff{r.String()}, nil
		},
		Apply: func(ctx context.Context) error {
			return h.Alone(ctx, func(ctx context.Context) error {
				r, err := h.toFollow(ctx)
				if err != nil || r == nil {
					return err
				}
				if err := (&step.Runner{}).Do(ctx, h.rotate(*r)); err != nil {
					return err
				}
				own := rotation.Store{API: kube.Kubeconfig(kubelet.Kubeconfig)}
				return own.Note(ctx, *r, h.Config.HostName)
			})
		},
	}
}

// toFollow returns the rotation whose phase this host has not reached; nil if
// there is none.
func (h *Host) toFollow(ctx context.Context) (*rotation.Rotation, error) {
	r, err := rotations.Read(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	behind, err := rotations.Behind(ctx, *r, []string{h.Config.HostName})
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	return r, nil
}

// rotate has the files of this control plane contain the keys of a phase, and
// then its programs use them, one after the other. The mark of a renewal has the
// agent finish that if it is interrupted, even while no API server runs.
func (h *Host) rotate(r rotation.Rotation) step.Plan {
	control := h.controlPlane()
	plan := step.Plan{
		{h.markRenewal()}, {control.Rotate(r)}, {control.Reissue()},
		{h.member()},
		{h.onDocker0(h.flanneld().Start())},
	}
	for _, s := range control.UseRenewed() {
		plan = append(plan, []step.Step{s})
	}
	plan = append(plan, h.kubeletFollows(r)...)
	return append(plan, []step.Step{h.endRenewal()}).Compact().Within(h.timeout())
}

// watchRotation reports when the state of a rotation changes.
func (r Resident) watchRotation(ctx context.Context, in *agent.Inbox) error {
	kube.Follow(ctx, rotations.Watch, func(watch.Event) { in.Put(agent.Cluster) })
	return nil
}
