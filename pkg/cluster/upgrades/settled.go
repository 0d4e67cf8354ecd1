package upgrades

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settled is the step that waits until the pods that left some workers are Ready on other nodes or again.
// Only then may the next workers be drained.
func (r run) settled(some []topology.ClusterNode) step.Step {
	var names []string
	for _, n := range some {
		names = append(names, n.Name)
	}
	id := step.IDOf("settled", strings.Join(names, "-"))
	return step.Wait(id, "wait for the pods that left "+strings.Join(names, ", "), func(ctx context.Context) error {
		return r.api.Do(func(client kubernetes.Interface) error { return incomplete(ctx, client) })
	}, nil)
}

// incomplete returns an error while Deployments or StatefulSets have fewer Ready pods than they want.
func incomplete(ctx context.Context, client kubernetes.Interface) error {
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	sets, err := client.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var short []string
	for _, d := range deployments.Items {
		if d.Status.ReadyReplicas < wanted(d.Spec.Replicas) {
			short = append(short, d.Namespace+"/"+d.Name)
		}
	}
	for _, s := range sets.Items {
		if s.Status.ReadyReplicas < wanted(s.Spec.Replicas) {
			short = append(short, s.Namespace+"/"+s.Name)
		}
	}
	if len(short) > 0 {
		return fmt.Errorf("not all pods are Ready of %s", strings.Join(short, ", "))
	}
	return nil
}

// wanted returns the number of pods of a specification, whose default is one. The status counts only pods that
// exist, and not one that was evicted a moment ago.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
