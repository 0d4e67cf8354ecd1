// Package node is one node of the cluster as the API server sees it: ready,
// labelled, gone.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ControlPlaneLabel marks the nodes that run the control plane.
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Node is the node Name of the API server that API reaches: on a control-plane
// host by the admin's kubeconfig, on a worker by the kubelet's own.
type Node struct {
	API     kube.Connect
	Name    string
	Explain func() string // what to add when the wait fails; may be nil
	// Started returns the time of the last start of the node's kubelet; ok is
	// false unless it runs. If Started is nil, WaitReady accepts any Ready
	// condition.
	Started func(context.Context) (at time.Time, ok bool, err error)
}

// WaitReady waits until the running kubelet reports the node as Ready. The
// condition of an earlier kubelet process stays in the API for a while after
// its end, and that of a kubelet whose API server was away.
func (n Node) WaitReady() step.Step {
	s := step.Wait("wait-for-node", "wait for the node to be Ready", n.nowReady, n.Explain)
	s.Apply = func(ctx context.Context) error {
		since, err := n.since(ctx)
		if err != nil {
			return err
		}
		if err := kube.Await(ctx, n.watch, func(o runtime.Object) error {
			return ready(o.(*corev1.Node), since)
		}, n.Explain); err != nil {
			return err
		}
		return step.Until(ctx, n.nowReady, n.Explain)
	}
	return s
}

// since returns the start of the kubelet, in the precision of API times.
func (n Node) since(ctx context.Context) (time.Time, error) {
	if n.Started == nil {
		return time.Time{}, nil
	}
	at, ok, err := n.Started(ctx)
	if err == nil && !ok {
		err = errors.New("the kubelet does not run")
	}
	return at.Truncate(time.Second), err
}

// Forget deletes the node object. Kubernetes then deletes its pods.
func (n Node) Forget() step.Step {
	name := "delete node " + n.Name
	return step.When(step.IDOf("delete-node", n.Name), name, name, func(ctx context.Context) (bool, error) {
		_, err := n.get(ctx)
		return err == nil, kube.IgnoreNotFound(err)
	}, n.Remove)
}

// Remove deletes the node. A missing node is not an error.
func (n Node) Remove(ctx context.Context) error {
	return n.API.Do(func(client kubernetes.Interface) error {
		err := client.CoreV1().Nodes().Delete(ctx, n.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: %w", n.Name, err)
		}
		return nil
	})
}

func (n Node) nowReady(ctx context.Context) error {
	since, err := n.since(ctx)
	if err != nil {
		return err
	}
	node, lease, err := n.reported(ctx)
	if err != nil {
		return kube.NoAnswer(err)
	}
	if err := ready(node, since); err != nil {
		return err
	}
	return expired(lease, time.Now())
}

// reported returns the node and the lease that its kubelet renews. There is no lease if
// the kubelet has yet to create it, which it does after the node, and without Started:
// the kubelet may then be on a host with another clock.
func (n Node) reported(ctx context.Context) (node *corev1.Node, lease *coordinationv1.Lease, err error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	err = n.API.Do(func(client kubernetes.Interface) (err error) {
		node, err = client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil || n.Started == nil {
			return err
		}
		lease, err = client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.Name, metav1.GetOptions{})
		return kube.IgnoreNotFound(err)
	})
	return node, lease, err
}

// expired returns an error if the lease of a node has expired. The node controller then
// reports the node as unknown within seconds, and the kubelet corrects this later.
func expired(lease *coordinationv1.Lease, now time.Time) error {
	if lease == nil || lease.Spec.RenewTime == nil || lease.Spec.LeaseDurationSeconds == nil {
		return nil
	}
	limit := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	if age := now.Sub(lease.Spec.RenewTime.Time); age > limit {
		return fmt.Errorf("the kubelet of node %s has not renewed its lease for %s", lease.Name, age.Round(time.Second))
	}
	return nil
}

func (n Node) get(ctx context.Context) (*corev1.Node, error) {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return kube.Ask(n.API, func(client kubernetes.Interface) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
	})
}

func (n Node) patch(ctx context.Context, patch string) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return n.API.Do(func(client kubernetes.Interface) error {
		options := metav1.PatchOptions{FieldManager: kube.FieldManager}
		_, err := client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, []byte(patch), options)
		return err
	})
}

// watch asks by the name of the node, because a kubelet may only watch its own.
func (n Node) watch(ctx context.Context) (watch.Interface, error) {
	return open(ctx, n.API, metav1.SingleObject(metav1.ObjectMeta{Name: n.Name}))
}

// Watch opens a watch of all nodes.
func Watch(api kube.Connect) kube.Watch {
	return func(ctx context.Context) (watch.Interface, error) { return open(ctx, api, metav1.ListOptions{}) }
}

func open(ctx context.Context, api kube.Connect, which metav1.ListOptions) (watch.Interface, error) {
	return kube.Ask(api, func(client kubernetes.Interface) (watch.Interface, error) {
		return client.CoreV1().Nodes().Watch(ctx, which)
	})
}

// ready also requires that pods can be placed on the node, see placeable.
func ready(node *corev1.Node, since time.Time) error {
	c := readyCondition(node)
	switch {
	case c == nil:
		return fmt.Errorf("node %s has not reported yet", node.Name)
	case c.LastHeartbeatTime.Time.Before(since):
		return fmt.Errorf("node %s has not reported since its kubelet was started", node.Name)
	case c.Status != corev1.ConditionTrue:
		return fmt.Errorf("node %s is not Ready: %s", node.Name, c.Message)
	}
	return placeable(node)
}

// readyCondition returns the condition Ready of a node; nil if its kubelet has not reported yet.
func readyCondition(node *corev1.Node) *corev1.NodeCondition {
	conditions := node.Status.Conditions
	i := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// placeable returns an error while the node has a taint of a node that is not Ready.
// The node controller removes it a moment after the condition changes. It removes the
// same taint with the effect NoExecute only every five seconds, but pods tolerate that
// effect for five minutes (admission plugin DefaultTolerationSeconds).
func placeable(node *corev1.Node) error {
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			continue
		}
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("node %s is Ready and still has the taint %s", node.Name, t.Key)
		}
	}
	return nil
}

// Ready reports whether a node says that it is Ready.
func Ready(n *corev1.Node) bool {
	c := readyCondition(n)
	return c != nil && c.Status == corev1.ConditionTrue
}

// LastReport returns when the kubelet has last reported the status of its node.
func LastReport(n *corev1.Node) time.Time {
	if c := readyCondition(n); c != nil {
		return c.LastHeartbeatTime.Time
	}
	return n.CreationTimestamp.Time
}

// NotReady returns the names of the nodes that are not Ready, or do not exist.
func (n Node) NotReady(ctx context.Context, names []string) (away []string, err error) {
	for _, n.Name = range names {
		node, err := n.get(ctx)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil || !Ready(node) {
			away = append(away, n.Name)
		}
	}
	return away, nil
}
