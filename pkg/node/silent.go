package node

import (
	"context"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Silent returns the names of the nodes whose kubelets do not renew their leases before ctx ends. It compares versions
// of the leases, because the clocks of other hosts may differ.
func Silent(ctx context.Context, api kube.Connect) ([]string, error) {
	first, err := leaseVersions(ctx, api)
	if err != nil {
		return nil, err
	}
	all, err := List(ctx, api)
	if err != nil {
		return nil, err
	}
	silent := make([]string, 0, len(all))
	for i := range all {
		silent = append(silent, all[i].Name)
	}
	for len(silent) > 0 && step.Pause(ctx, renewPause) == nil {
		now, err := leaseVersions(ctx, api)
		if err != nil {
			continue // the result is that of the last answer
		}
		silent = slices.DeleteFunc(silent, func(name string) bool { return now[name] != first[name] })
	}
	return silent, nil
}

// leaseVersions returns the resource version of the lease of each node.
func leaseVersions(ctx context.Context, api kube.Connect) (map[string]string, error) {
	leases, err := kube.Ask(api, func(client kubernetes.Interface) (*coordinationv1.LeaseList, error) {
		return client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for i := range leases.Items {
		versions[leases.Items[i].Name] = leases.Items[i].ResourceVersion
	}
	return versions, nil
}

// renewPause is the time between two looks. A kubelet renews its lease every ten seconds.
const renewPause = 2 * time.Second
