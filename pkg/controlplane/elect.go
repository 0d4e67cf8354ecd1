package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Electing reports whether this host's controller manager shares its work with
// others, or will once it runs.
func Electing(files host.Files) bool {
	data, err := files.Read(podPath("kube-controller-manager"))
	return err == nil && bytes.Contains(data, []byte("--leader-elect=true"))
}

// AwaitElection waits until the control planes that are there elect a leader. A
// lone one does not; it begins to when it hears of a second, and two that both
// take themselves for the only one would do everything twice.
func AwaitElection(files host.Files) step.Step {
	name := "wait until the other control planes share their work"
	return step.Step{
		Name:  name,
		Waits: true,
		Check: func(context.Context) (step.Diff, error) {
			if Electing(files) {
				return nil, nil
			}
			return step.Diff{name}, nil
		},
		Apply: func(ctx context.Context) error {
			for _, leader := range []string{"kube-controller-manager", "kube-scheduler"} {
				open := func(ctx context.Context) (watch.Interface, error) { return watchLease(ctx, files, leader) }
				if err := kube.Await(ctx, open, held, nil); err != nil {
					return fmt.Errorf("%s: %w; look at `kube-bootstrap status` on the first control plane", leader, err)
				}
			}
			return nil
		},
	}
}

func watchLease(ctx context.Context, files host.Files, name string) (watch.Interface, error) {
	client, err := adminClient(files)
	if err != nil {
		return nil, err
	}
	byName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()}
	return client.CoordinationV1().Leases(metav1.NamespaceSystem).Watch(ctx, byName)
}

// staleAfter is far longer than a leader is silent, and longer than clocks of
// one cluster differ.
const staleAfter = time.Minute

func held(o runtime.Object) error {
	lease := o.(*coordinationv1.Lease)
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return errors.New("no leader yet")
	}
	if since := time.Since(lease.Spec.RenewTime.Time); since.Abs() > staleAfter {
		return fmt.Errorf("its leader was last heard of %s ago", since.Round(time.Second))
	}
	return nil
}
