package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Present lists the objects that Delete would delete, one per line: the objects
// that exist and have the same value of a label.
func Present(ctx context.Context, connect Connect, objects []*Object, label string) (step.Diff, error) {
	server, err := dial(connect)
	if err != nil {
		return nil, NoAnswer(err)
	}
	var diff step.Diff
	for _, object := range objects {
		live, err := server.labelled(ctx, object, label)
		if err != nil {
			return nil, NoAnswer(err)
		}
		if live != nil {
			diff = append(diff, "delete "+title(object))
		}
	}
	return diff, nil
}

// Delete deletes objects in the reverse order of Apply, and waits until they are
// gone: nothing can be applied in a namespace that is being deleted. The garbage
// collector deletes what depends on them.
func Delete(ctx context.Context, connect Connect, objects []*Object, label string) error {
	server, err := dial(connect)
	if err != nil {
		return err
	}
	for wave := 2; wave >= 0; wave-- {
		for _, object := range objects {
			if rank(object) != wave {
				continue
			}
			if err := server.remove(ctx, object, label); err != nil {
				return fmt.Errorf("delete %s: %w", title(object), err)
			}
		}
	}
	return step.Until(ctx, func(ctx context.Context) error {
		left, err := Present(ctx, connect, objects, label)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("still there: %s", left)
		}
		return err
	}, nil)
}

// labelled returns the live object if it has the same value of a label, and
// otherwise nil.
func (s *server) labelled(ctx context.Context, o *Object, label string) (*Object, error) {
	resource, err := s.at(o)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && live.GetLabels()[label] != o.GetLabels()[label] {
		return nil, nil
	}
	return live, err
}

func (s *server) remove(ctx context.Context, o *Object, label string) error {
	live, err := s.labelled(ctx, o, label)
	if err != nil || live == nil {
		return err
	}
	resource, err := s.at(o)
	if err != nil {
		return err
	}
	background, uid := metav1.DeletePropagationBackground, live.GetUID()
	err = resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
