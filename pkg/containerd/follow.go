package containerd

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const bridgeName = "docker0"

// FollowLease removes pods whose address is not in this host's subnet: no other
// host reaches them any more, and the kubelet makes new ones at once. A pod
// with the right address that lost its bridge, as when docker0 was deleted, is
// attached to it again. Pods on the host's own network have neither.
func (r Runtime) FollowLease(lease func() (netip.Prefix, int, error)) step.Step {
	return step.Step{
		Name: "keep pods on this host's subnet",
		Check: func(context.Context) (step.Diff, error) {
			lost, err := r.lost(lease)
			return lost.diff(), err
		},
		Apply: func(ctx context.Context) error {
			lost, err := r.lost(lease)
			if err != nil {
				return err
			}
			return errors.Join(r.removeSandboxes(ctx, lost.moved), attach(lost.detached))
		},
	}
}

// lostPods are the pods that nobody reaches.
type lostPods struct {
	subnet   netip.Prefix
	moved    []attached // with an address of another subnet
	detached []attached // whose interface is not on the bridge
}

func (l lostPods) diff() step.Diff {
	var diff step.Diff
	for _, p := range l.moved {
		diff = append(diff, fmt.Sprintf("have the pod %s made again: its address %s is not in %s", p.pod, p.address, l.subnet))
	}
	for _, p := range l.detached {
		diff = append(diff, fmt.Sprintf("attach %s of the pod %s to %s", p.veth, p.pod, bridgeName))
	}
	return diff
}

// lost finds nothing before there is a lease, or while docker0 is missing.
func (r Runtime) lost(lease func() (netip.Prefix, int, error)) (lostPods, error) {
	subnet, _, err := lease()
	if err != nil {
		return lostPods{}, nil
	}
	lost := lostPods{subnet: subnet.Masked()}
	ports, bridge, err := host.BridgePorts(bridgeName)
	if err != nil {
		return lost, err
	}
	for _, p := range r.attached() {
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
		errs = append(errs, host.AttachToBridge(p.veth, bridgeName))
	}
	return errors.Join(errs...)
}

// removeSandboxes has CRI remove pods, and with each its containers, its
// interface and its address.
func (r Runtime) removeSandboxes(ctx context.Context, pods []attached) error {
	if len(pods) == 0 {
		return nil
	}
	return r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
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
