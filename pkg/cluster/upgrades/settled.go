package upgrades

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// complete is the step that remembers which workloads lack pods before some workers are drained. The wait after the
// drain does not wait for these.
func (r run) complete(some []topology.ClusterNode) step.Step {
	names := namesOf(some)
	title := "look for workloads that lack pods before " + strings.Join(names, ", ")
	return step.Always(step.IDOf("complete", strings.Join(names, "-")), title, func(ctx context.Context) error {
		clear(r.short)
		found, err := incomplete(ctx, r.api)
		for _, name := range found {
			r.short[name] = true
		}
		return err
	})
}

// settled is the step that waits until the pods that left some workers are Ready on other nodes or again.
// Only then may the next workers be drained.
func (r run) settled(some []topology.ClusterNode) step.Step {
	names := namesOf(some)
	id := step.IDOf("settled", strings.Join(names, "-"))
	return step.Wait(id, "wait for the pods that left "+strings.Join(names, ", "), func(ctx context.Context) error {
		found, err := incomplete(ctx, r.api)
		return cmp.Or(err, newlyShort(found, r.short))
	}, nil)
}

func namesOf(nodes []topology.ClusterNode) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// newlyShort returns an error for workloads that lack pods now, and did not before.
func newlyShort(found []string, before map[string]bool) error {
	found = slices.DeleteFunc(found, func(name string) bool { return before[name] })
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("not all pods are Ready of %s", strings.Join(found, ", "))
}

// incomplete returns the Deployments and StatefulSets that have fewer Ready pods than they want.
func incomplete(ctx context.Context, api kube.Connect) (short []string, err error) {
	client, err := api.Client()
	if err != nil {
		return nil, err
	}
	deployments, err := client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	sets, err := client.AppsV1().StatefulSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		if d.Status.ReadyReplicas < wanted(d.Spec.Replicas) {
			short = append(short, "Deployment "+d.Namespace+"/"+d.Name)
		}
	}
	for _, s := range sets.Items {
		if s.Status.ReadyReplicas < wanted(s.Spec.Replicas) {
			short = append(short, "StatefulSet "+s.Namespace+"/"+s.Name)
		}
	}
	return short, nil
}

// wanted returns the number of pods of a specification, whose default is one. The status is not enough:
// it counts only existing pods, and an evicted pod may not have been replaced yet.
func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}
