package node

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Undrainable returns the problems that a drain of the node would have: what Drain refuses, and pods with a
// volume on this host, which cannot start on another one [disruption-budget, pods-lost, pods-volume].
func (n Node) Undrainable(ctx context.Context, d Drain) error {
	_, err := n.toDrain(ctx, d)
	if err != nil && len(step.Problems(err)) == 0 {
		return err
	}
	pods, listErr := n.movable(ctx)
	if listErr != nil {
		return listErr
	}
	return errors.Join(err, n.API.Do(func(client kubernetes.Interface) error {
		return bound(ctx, client, n.Name, pods)
	}))
}

// bound returns the problem of pods whose volumes are on their node.
func bound(ctx context.Context, client kubernetes.Interface, node string, pods []corev1.Pod) error {
	var held []corev1.Pod
	for _, p := range pods {
		local, err := hasLocalVolume(ctx, client, p)
		if err != nil {
			return err
		}
		if local {
			held = append(held, p)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return &step.Problem{Name: "pods-volume",
		Text: fmt.Sprintf("pods have a volume on node %s, and cannot run elsewhere while it is drained: %s", node,
			podNames(held)),
		Remedy: "expect these pods to stop for the time of the drain, or move their data"}
}

func hasLocalVolume(ctx context.Context, client kubernetes.Interface, p corev1.Pod) (bool, error) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, err := client.CoreV1().PersistentVolumeClaims(p.Namespace).Get(ctx, v.PersistentVolumeClaim.ClaimName,
			metav1.GetOptions{})
		if err != nil || claim.Spec.VolumeName == "" {
			return false, kube.IgnoreNotFound(err)
		}
		volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			return false, kube.IgnoreNotFound(err)
		}
		if volume.Spec.Local != nil || volume.Spec.HostPath != nil {
			return true, nil
		}
	}
	return false, nil
}

// DeadWebhooks returns the problems of admission webhooks that refuse requests because nothing serves them
// [webhook-down]. They refuse the new pods of a drain too.
func DeadWebhooks(ctx context.Context, api kube.Connect) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return api.Do(func(client kubernetes.Interface) error {
		admission := client.AdmissionregistrationV1()
		validating, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the admission webhooks: %w", err)
		}
		mutating, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list the admission webhooks: %w", err)
		}
		var hooks []webhook
		for _, c := range validating.Items {
			for _, w := range c.Webhooks {
				hooks = append(hooks, webhook{c.Name + "/" + w.Name, w.FailurePolicy, w.ClientConfig.Service})
			}
		}
		for _, c := range mutating.Items {
			for _, w := range c.Webhooks {
				hooks = append(hooks, webhook{c.Name + "/" + w.Name, w.FailurePolicy, w.ClientConfig.Service})
			}
		}
		return host.Each(hooks, func(w webhook) error { return w.problem(ctx, client) })
	})
}

// webhook is a validating or mutating webhook.
type webhook struct {
	name    string
	policy  *admissionv1.FailurePolicyType
	service *admissionv1.ServiceReference
}

func (w webhook) problem(ctx context.Context, client kubernetes.Interface) error {
	if w.service == nil || w.policy != nil && *w.policy == admissionv1.Ignore {
		return nil
	}
	found, err := client.DiscoveryV1().EndpointSlices(w.service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: discoveryv1.LabelServiceName + "=" + w.service.Name,
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if serves(found.Items) {
		return nil
	}
	return &step.Problem{Name: "webhook-down",
		Text: fmt.Sprintf("admission webhook %s refuses requests, as no pod serves Service %s/%s", w.name,
			w.service.Namespace, w.service.Name),
		Remedy: "start its pods, or remove the webhook"}
}

func serves(all []discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(all, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready == nil || *e.Conditions.Ready
		})
	})
}
