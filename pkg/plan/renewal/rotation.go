package renewal

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// State is the state of a rotation as the agent of a control plane reads it.
var State = rotation.Store{API: kube.Kubeconfig(controlplane.AgentConf)}

// FollowRotation is the step with which the agent of a host reaches the phase of
// the rotation that is under way.
func FollowRotation(h *local.Host) step.Step {
	if h.Saved.Role != local.Master {
		return followTrust(h)
	}
	return step.Step{
		Name: "follow a rotation",
		Check: func(ctx context.Context) (step.Diff, error) {
			r, err := toFollow(ctx, h)
			if err != nil || r == nil {
				return nil, kube.NoAnswer(err)
			}
			return step.Diff{r.String()}, nil
		},
		Apply: func(ctx context.Context) error {
			return Alone(ctx, h, func(ctx context.Context) error {
				r, err := toFollow(ctx, h)
				if err != nil || r == nil {
					return err
				}
				if err := (&step.Runner{}).Do(ctx, rotate(h, *r)); err != nil {
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
func toFollow(ctx context.Context, h *local.Host) (*rotation.Rotation, error) {
	r, err := State.Read(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	behind, err := State.Behind(ctx, *r, []string{h.Config.HostName})
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	return r, nil
}

// rotate has the files of this control plane contain the keys of a phase, and
// then its programs use them, one after the other. The mark of a renewal has the
// agent finish that if it is interrupted, even while no API server runs.
func rotate(h *local.Host, r rotation.Rotation) step.Plan {
	plan := step.Plan{
		{markRenewal(h)}, {controlplane.Rotate(h.Files, r)}, {parts.PKI(h).Reissue()},
		{parts.StartEtcd(h)},
		{parts.OnDocker0(h, parts.Flanneld(h).Start())},
	}
	plan = append(plan, parts.StaticPods(h).UseRenewed()...)
	plan = append(plan, parts.ContainedAddons(h)) // metrics-server trusts the authority of kubelets
	plan = append(plan, kubeletFollows(h, r)...)
	return append(plan, []step.Step{endRenewal(h)}).Compact().Within(h.Timeout())
}
