package plan

import (
	"context"

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

// earlyKubelet is the step that starts the kubelet of a new host, and on a control plane the API server,
// whose static pod it writes first. It has no Undo, because later steps do the same.
func earlyKubelet(network parts.PodNetwork, node parts.NodeComponents, join parts.Join, pods ...step.Step) step.Step {
	start := node.Kubelet.Start()
	steps := append([]step.Step{node.Kubelet.Configure()}, append(pods, node.Pods.Claim(), start)...)
	return ifNew(network, join, step.Step{
		ID: "early-kubelet", Name: "start the kubelet before docker0 moves", Check: start.Check,
		Apply: func(ctx context.Context) error {
			for _, s := range steps {
				if err := s.Apply(ctx); err != nil {
					return step.Wrap(err, "%s", s.Name)
				}
			}
			return nil
		},
	})
}

// earlyAPIServer is the step that waits for the container of the API server. The move
// of docker0 ends the kubelet, which would otherwise create the container afterwards.
func earlyAPIServer(network parts.PodNetwork, control parts.ControlPlane, join parts.Join) step.Step {
	started := control.StaticPod("kube-apiserver").Started
	return ifNew(network, join, parts.Watched(step.Wait(
		"early-apiserver", "start the API server before docker0 moves", started, parts.RunningKubelet().Explain)))
}

// ifNew returns s with a Check that finds nothing once docker0 can move, or
// where the host has a CNI configuration: a node would be Ready, and pods would
// get addresses of that network. It excludes the step where docker0 does not
// move, and on a joining control plane, whose API server waits until its etcd is a
// member.
func ifNew(network parts.PodNetwork, join parts.Join, s step.Step) step.Step {
	check := s.Check
	s.Check = func(ctx context.Context) (step.Diff, error) {
		if !network.IsNew() {
			return nil, nil
		}
		return check(ctx)
	}
	return network.OnDocker0(s.If(!join.Wanted))
}
