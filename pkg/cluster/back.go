package cluster

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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// backRows switch hosts on, all at once, and wait until each has told the API
// server that it is Ready since, and until names are resolved again. Nothing is
// run on them: a machine comes back by itself.
func (f *fleet) backRows(hosts []string) step.Plan {
	api := &memberAPI{fleet: f}
	waits := []step.Step{todo("wait for the cluster's DNS", api.awaitDNS)}
	for _, name := range hosts {
		waits = append(waits, todo("wait for "+name+" to be Ready", func(ctx context.Context) error { return api.awaitNode(ctx, name) }))
	}
	on := func(ctx context.Context) error { return f.docker.SwitchOn(ctx, hosts...) }
	return step.Plan{append(f.front(), todo(fmt.Sprintf("switch %d hosts on", len(hosts)), on)), waits}
}

// memberAPI reaches the API server of a cluster whose hosts are booting.
type memberAPI struct {
	*fleet
	mu     sync.Mutex
	client kubernetes.Interface
}

// connect keeps what it found: hosts keep their addresses and certificates.
func (a *memberAPI) connect(ctx context.Context) (kubernetes.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	data, err := Kubeconfig(ctx, a.Options)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, err
	}
	a.client, err = kubernetes.NewForConfig(config)
	return a.client, err
}

// awaitNode waits for a report of the kubelet that is younger than its host's
// last boot: what the API server remembers from before says nothing.
func (a *memberAPI) awaitNode(ctx context.Context, name string) error {
	machine, err := a.docker.Kept(ctx, name, false)
	if err != nil {
		return err
	}
	open := func(ctx context.Context) (watch.Interface, error) {
		client, err := a.connect(ctx)
		if err != nil {
			return nil, err
		}
		return client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	}
	return kube.Await(ctx, open, func(o runtime.Object) error { return backAgain(o.(*corev1.Node), machine.Started) }, nil)
}

func backAgain(n *corev1.Node, since time.Time) error {
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

// dnsSelector is the label that every cluster's DNS has.
const dnsSelector = "k8s-app=kube-dns"

func (a *memberAPI) awaitDNS(ctx context.Context) error {
	open := func(ctx context.Context) (watch.Interface, error) {
		client, err := a.connect(ctx)
		if err != nil {
			return nil, err
		}
		return client.CoreV1().Pods(metav1.NamespaceSystem).Watch(ctx, metav1.ListOptions{LabelSelector: dnsSelector})
	}
	return kube.Await(ctx, open, func(o runtime.Object) error { return a.answers(ctx, o.(*corev1.Pod)) }, nil)
}

// answers says whether a pod serves, by a container of this boot.
func (a *memberAPI) answers(ctx context.Context, p *corev1.Pod) error {
	machine, err := a.docker.Kept(ctx, p.Spec.NodeName, false)
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
	return podReady(*p)
}

func podReady(p corev1.Pod) error {
	if !kube.PodReady(p) {
		return errors.New("pod " + p.Name + " is not Ready")
	}
	return nil
}
