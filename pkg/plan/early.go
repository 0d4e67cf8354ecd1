package plan

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// On a new host, the kubelet starts before docker0 moves, because the API server of
// a control plane and the certificate of a worker take longer than that:
//
//	etcd ──▶ flanneld ──▶ docker0 (Docker and the kubelet restart) ──▶ node Ready
//	kubelet ──▶ container of the API server ─────────────▶ API server ──┘
//
// containerd keeps the container while Docker restarts. The steps of the later
// stages complete and undo what these two do.

// earlyKubelet is the step that starts the kubelet of a new host.
func earlyKubelet(h *local.Host, role string) step.Step {
	kubelet := parts.Kubelet(h, role)
	start := kubelet.Start()
	return ifNew(h, step.Step{
		Name:  "start the kubelet before docker0 moves",
		Check: start.Check,
		Apply: func(ctx context.Context) error {
			return (&step.Runner{}).Do(ctx, step.Plan{{kubelet.Configure()}, {parts.Pods(h).Claim()}, {start}})
		},
	})
}

// earlyAPIServer is the step that waits for the container of the API server.
// Without its kubelet the container would start after the move of docker0. The
// controller manager is the other static pod of that time: the move ends the
// kubelet, which must not be creating a container then.
func earlyAPIServer(h *local.Host) step.Step {
	started := func(ctx context.Context) error {
		for _, pod := range []string{"kube-apiserver", "kube-controller-manager"} {
			if err := parts.StaticPod(h, pod).Started(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	return ifNew(h, parts.Watched(h, step.Wait("start the API server before docker0 moves", started, parts.RunningKubelet().Explain)))
}

// ifNew returns s with a Check that finds nothing once docker0 can move, or
// where the host has a CNI configuration: a node would be Ready, and pods would
// get addresses of that network. It returns an empty step where docker0 does not
// move, and on a joining control plane, whose API server waits until its etcd is a
// member.
func ifNew(h *local.Host, s step.Step) step.Step {
	if h.Config.Join {
		return step.Step{}
	}
	check := s.Check
	s.Check = func(ctx context.Context) (step.Diff, error) {
		if _, err := h.Lease(); err == nil || containerd.CNIProblems(h.Files, false) != nil {
			return nil, nil
		}
		return check(ctx)
	}
	return parts.OnDocker0(h, s)
}
