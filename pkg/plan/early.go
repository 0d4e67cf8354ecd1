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

// earlyKubelet returns the steps that start the kubelet of a new host, on a control plane
// with the API server, whose static pod is apiServer.
func earlyKubelet(
	network parts.PodNetwork, node parts.NodeComponents, apiServer step.Step, join parts.Join, needs ...step.ID,
) []step.Step {
	start := node.Kubelet.Start()
	configure := early(network, join, start, node.Kubelet.Configure()).Needing(needs...)
	pod := early(network, join, start, apiServer).Needing(needs...)
	claim := early(network, join, start, node.Pods.Claim()).Needing(configure.ID, pod.ID)
	return []step.Step{configure, pod, claim, early(network, join, start, start).Needing(claim.ID)}
}

// early returns s as a step before the start of the kubelet of a new host. It has no Undo, because
// a later step does the same.
func early(network parts.PodNetwork, join parts.Join, start, s step.Step) step.Step {
	check := s.Check
	s.ID, s.Name, s.Undo = "early-"+s.ID, s.Name+" before docker0 moves", nil
	s.Check = func(ctx context.Context) (step.Diff, error) {
		if diff, err := start.Check(ctx); err != nil || len(diff) == 0 {
			return nil, err // the kubelet runs already
		}
		return check(ctx)
	}
	return ifNew(network, join, s)
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
