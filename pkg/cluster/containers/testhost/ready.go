package testhost

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Waiter waits until the nodes and the DNS of a cluster work after a start of
// its hosts. It keeps its client, because the hosts keep their addresses and
// certificates.
type Waiter struct {
	cluster containers.Cluster
	mu      sync.Mutex
	client  kubernetes.Interface
}

// NewWaiter returns the waiter of a cluster.
func NewWaiter(c containers.Cluster) *Waiter { return &Waiter{cluster: c} }

// Steps returns steps that wait for the DNS and for each of these nodes.
func (w *Waiter) Steps(hosts []string) []step.Step {
	all := []step.Step{step.Always("wait-for-dns", "wait for the cluster's DNS", w.dns)}
	for _, name := range hosts {
		all = append(all, w.Step(name))
	}
	return all
}

// Step returns the step that waits for a node.
func (w *Waiter) Step(host string) step.Step {
	return step.Always(step.IDOf("wait-for-node", host), "wait for "+host+" to be Ready",
		func(ctx context.Context) error { return w.node(ctx, host) })
}

func (w *Waiter) connect(ctx context.Context) (kubernetes.Interface, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.client != nil {
		return w.client, nil
	}
	client, err := apiserver.Connect(ctx, w.cluster.Session, "").Client()
	if err == nil {
		w.client = client
	}
	return client, err
}

// node waits for a status of the kubelet that is newer than the last start of its
// host. The API server still has the status from before the start.
func (w *Waiter) node(ctx context.Context, name string) error {
	machine, err := w.cluster.Machines.Inspect(ctx, name, false)
	if err != nil {
		return err
	}
	open := func(ctx context.Context) (watch.Interface, error) {
		client, err := w.connect(ctx)
		if err != nil {
			return nil, err
		}
		return client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(),
		})
	}
	return kube.Await(ctx, open,
		func(o runtime.Object) error { return reportsReady(o.(*corev1.Node), machine.Started) }, nil)
}

func reportsReady(n *corev1.Node, since time.Time) error {
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second)):
			return fmt.Errorf("node %s has not reported since its host was started", n.Name)
		case c.Status != corev1.ConditionTrue:
			return fmt.Errorf("node %s is not Ready: %s", n.Name, c.Message)
		default:
			return nil
		}
	}
	return fmt.Errorf("node %s has not reported yet", n.Name)
}

const dnsSelector = "k8s-app=kube-dns"

func (w *Waiter) dns(ctx context.Context) error {
	open := func(ctx context.Context) (watch.Interface, error) {
		client, err := w.connect(ctx)
		if err != nil {
			return nil, err
		}
		return client.CoreV1().Pods(metav1.NamespaceSystem).Watch(ctx, metav1.ListOptions{LabelSelector: dnsSelector})
	}
	return kube.Await(ctx, open, func(o runtime.Object) error { return w.serves(ctx, o.(*corev1.Pod)) }, nil)
}

// serves returns an error unless the pod is Ready, with containers that are younger than its host.
func (w *Waiter) serves(ctx context.Context, p *corev1.Pod) error {
	machine, err := w.cluster.Machines.Inspect(ctx, p.Spec.NodeName, false)
	if err != nil {
		return err
	}
	if !machine.Running {
		return errors.New("the host of pod " + p.Name + " is off")
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil || c.State.Running.StartedAt.Time.Before(machine.Started.Truncate(time.Second)) {
			return errors.New("pod " + p.Name + " has not been started since its host was")
		}
	}
	return apiserver.PodReady(*p)
}
