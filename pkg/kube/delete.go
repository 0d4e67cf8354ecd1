package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// DeleteStep is the step that deletes objects, if they have the same value of a label.
func DeleteStep(id step.ID, name string, api Connect, label string, objects func() ([]*Object, error)) step.Step {
	return stepOf(id, name, objects,
		func(ctx context.Context, all []*Object) (step.Diff, error) { return present(ctx, api, all, label) },
		func(ctx context.Context, all []*Object) error { return remove(ctx, api, all, label) })
}

// present lists the objects that remove would delete, one per line: the objects
// that exist and have the same value of a label.
func present(ctx context.Context, connect Connect, objects []*Object, label string) (step.Diff, error) {
	server, err := dial(connect)
	if err != nil {
		return nil, NoAnswer(err)
	}
	var diff step.Diff
	for _, object := range objects {
		_, live, err := server.labelled(ctx, object, label)
		if err != nil {
			return nil, NoAnswer(err)
		}
		if live != nil {
			diff = append(diff, "delete "+title(object))
		}
	}
	return diff, nil
}

// remove deletes objects in the reverse order of Apply, and waits until they are
// gone: nothing can be applied in a namespace that is being deleted. The garbage
// collector deletes what depends on them.
func remove(ctx context.Context, connect Connect, objects []*Object, label string) error {
	server, err := dial(connect)
	if err != nil {
		return err
	}
	lastFirst := func(a, b *Object) int { return cmp.Compare(rank(b), rank(a)) }
	for _, object := range slices.SortedStableFunc(slices.Values(objects), lastFirst) {
		if err := server.remove(ctx, object, label); err != nil {
			return fmt.Errorf("delete %s: %w", title(object), err)
		}
	}
	return step.Until(ctx, func(ctx context.Context) error {
		left, err := present(ctx, connect, objects, label)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("still there: %s", left)
		}
		return err
	}, nil)
}

// labelled returns the live object, or nil if it has another value of a label.
func (s *server) labelled(ctx context.Context, o *Object, label string) (dynamic.ResourceInterface, *Object, error) {
	resource, err := s.at(o)
	if meta.IsNoMatchError(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.GetLabels()[label] != o.GetLabels()[label] {
		return nil, nil, nil
	}
	return resource, live, err
}

func (s *server) remove(ctx context.Context, o *Object, label string) error {
	resource, live, err := s.labelled(ctx, o, label)
	if err != nil || live == nil {
		return err
	}
	options := metav1.NewPreconditionDeleteOptions(string(live.GetUID()))
	options.PropagationPolicy = new(metav1.DeletePropagationBackground)
	return IgnoreNotFound(resource.Delete(ctx, o.GetName(), *options))
}
