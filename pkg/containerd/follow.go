package containerd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const bridgeName = "docker0"

// FollowLease is the step that keeps pods reachable after a change of the
// lease. It removes pods whose address is outside of this host's subnet; the
// kubelet creates new ones. It attaches other pods to docker0 again if
// docker0 was deleted. Pods on the host network are not affected.
func FollowLease(files host.Files, socket Socket, lease func() (netip.Prefix, int, error)) step.Step {
	return step.Step{
		Name: "keep pods on this host's subnet",
		Check: func(context.Context) (step.Diff, error) {
			lost, err := findLost(files, lease)
			return lost.diff(), err
		},
		Apply: func(ctx context.Context) error {
			lost, err := findLost(files, lease)
			if err != nil {
				return err
			}
			return errors.Join(removePods(ctx, socket, lost.moved), attach(lost.detached))
		},
	}
}

// lostPods are the pods that cannot be reached.
type lostPods struct {
	subnet   netip.Prefix
	moved    []attached // their address is in another subnet
	detached []attached // their interface is not a port of docker0
}

func (l lostPods) diff() step.Diff {
	var diff step.Diff
	for _, p := range l.moved {
		diff = append(diff, fmt.Sprintf("recreate the pod %s: its address %s is not in %s", p.pod, p.address, l.subnet))
	}
	for _, p := range l.detached {
		diff = append(diff, fmt.Sprintf("attach %s of the pod %s to %s", p.veth, p.pod, bridgeName))
	}
	return diff
}

// findLost returns no pods if there is no lease yet, or if docker0 is missing.
func findLost(files host.Files, lease func() (netip.Prefix, int, error)) (lostPods, error) {
	subnet, _, err := lease()
	if err != nil {
		return lostPods{}, nil
	}
	lost := lostPods{subnet: subnet.Masked()}
	ports, bridge, err := links.BridgePorts(bridgeName)
	if err != nil {
		return lost, err
	}
	for _, p := range attachedPods(files) {
		onBridge, exists := ports[p.veth]
		switch {
		case !lost.subnet.Contains(p.address):
			lost.moved = append(lost.moved, p)
		case bridge && exists && !onBridge:
			lost.detached = append(lost.detached, p)
		}
	}
	return lost, nil
}

func attach(pods []attached) error {
	var errs []error
	for _, p := range pods {
		errs = append(errs, links.AttachToBridge(p.veth, bridgeName))
	}
	return errors.Join(errs...)
}

// removePods removes pods by CRI, with their containers, interfaces and
// addresses.
func removePods(ctx context.Context, socket Socket, pods []attached) error {
	if len(pods) == 0 {
		return nil
	}
	return socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		var errs []error
		for _, p := range pods {
			step.Report(ctx, "remove the pod "+p.pod, 0, 0)
			errs = append(errs, removeSandbox(ctx, cri, p.sandbox))
		}
		return errors.Join(errs...)
	})
}

func removeSandbox(ctx context.Context, cri runtime.RuntimeServiceClient, id string) error {
	_, stopped := cri.StopPodSandbox(ctx, &runtime.StopPodSandboxRequest{PodSandboxId: id})
	_, removed := cri.RemovePodSandbox(ctx, &runtime.RemovePodSandboxRequest{PodSandboxId: id})
	return errors.Join(stopped, removed)
}
