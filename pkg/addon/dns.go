package addon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	system   = metav1.NamespaceSystem
	dnsLabel = "k8s-app=kube-dns"
)

var dnsSlices = metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=kube-dns"}

// WaitDNS waits until a CoreDNS pod is ready.
func (a Applier) WaitDNS() step.Step {
	s := step.Wait("wait-for-dns", "wait for CoreDNS", a.dnsReady, nil)
	s.Apply = func(ctx context.Context) error {
		holds := func(o runtime.Object) error { return answers(o.(*discoveryv1.EndpointSlice)) }
		return kube.Await(ctx, a.watchDNS, holds, func() string { return a.dnsPods(ctx) })
	}
	return s
}

func (a Applier) watchDNS(ctx context.Context) (watch.Interface, error) {
	client, err := a.API.Client()
	if err != nil {
		return nil, err
	}
	return client.DiscoveryV1().EndpointSlices(system).Watch(ctx, dnsSlices)
}

func (a Applier) dnsReady(ctx context.Context) error {
	client, err := a.API.Client()
	if err != nil {
		return kube.NoAnswer(err)
	}
	list, err := client.DiscoveryV1().EndpointSlices(system).List(ctx, dnsSlices)
	if err != nil {
		return kube.NoAnswer(err)
	}
	last := errors.New("no endpoint yet")
	for i := range list.Items {
		if last = answers(&list.Items[i]); last == nil {
			return nil
		}
	}
	return last
}

func answers(slice *discoveryv1.EndpointSlice) error {
	for _, e := range slice.Endpoints {
		if e.Conditions.Ready != nil && *e.Conditions.Ready {
			return nil
		}
	}
	return fmt.Errorf("none of %d pods is ready", len(slice.Endpoints))
}

// dnsPods returns the reasons why the CoreDNS pods are not ready.
func (a Applier) dnsPods(ctx context.Context) string {
	ctx, cancel := step.Checking(context.WithoutCancel(ctx))
	defer cancel()
	client, err := a.API.Client()
	if err != nil {
		return err.Error()
	}
	pods, err := client.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: dnsLabel})
	if err != nil {
		return err.Error()
	}
	if len(pods.Items) == 0 {
		return "no CoreDNS pod was made: look at the log of the controller manager"
	}
	var lines []string
	for i := range pods.Items {
		lines = append(lines, trouble(&pods.Items[i]))
	}
	return strings.Join(lines, "\n")
}

func trouble(pod *corev1.Pod) string {
	parts := []string{"pod " + pod.Name + ": " + string(pod.Status.Phase)}
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue && c.Message != "" {
			parts = append(parts, c.Message)
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			parts = append(parts, w.Reason+": "+w.Message)
		}
		if t := c.LastTerminationState.Terminated; t != nil {
			parts = append(parts, fmt.Sprintf("ended with %d %s", t.ExitCode, t.Message))
		}
	}
	return strings.Join(parts, "; ")
}
