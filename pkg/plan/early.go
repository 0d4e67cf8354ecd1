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
// The API server waits for etcd. Its container takes longer to start than etcd needs
// to elect itself, so neither waits for the other. containerd keeps the container
// while Docker restarts. The steps of the later stages complete and undo what these
// two do.

// earlyKubelet is the step that starts the kubelet of a new host, on a control plane
// with the API server.
func earlyKubelet(h *local.Host, role string) step.Step {
	kubelet := parts.Kubelet(h, role)
	start := kubelet.Start()
	return ifNew(h, step.Step{
		Name:  "start the kubelet before docker0 moves",
		Check: start.Check,
		Apply: func(ctx context.Context) error {
			before := []step.Step{kubelet.Configure()}
			if role == local.Master {
				before = append(before, parts.StaticPods(h).Early())
			}
			return (&step.Runner{}).Do(ctx, step.Plan{before, {parts.Pods(h).Claim()}, {start}})
		},
	})
}

// earlyAPIServer is the step that waits for the container of the API server. The move
// of docker0 ends the kubelet, which would otherwise create the container afterwards.
func earlyAPIServer(h *local.Host) step.Step {
	started := parts.StaticPod(h, "kube-apiserver").Started
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
