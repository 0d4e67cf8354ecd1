package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ApplyStep is the step that applies objects, which it gets when it runs.
func ApplyStep(id step.ID, name string, api Connect, objects func() ([]*Object, error)) step.Step {
	return stepOf(id, name, objects,
		func(ctx context.Context, all []*Object) (step.Diff, error) { return Missing(ctx, api, all) },
		func(ctx context.Context, all []*Object) error { return Apply(ctx, api, all) })
}

func stepOf(id step.ID, name string, objects func() ([]*Object, error),
	check func(context.Context, []*Object) (step.Diff, error), apply func(context.Context, []*Object) error) step.Step {
	return step.Step{
		ID: id, Name: name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			all, err := objects()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{name}, nil // an earlier step writes the file
			}
			if err != nil {
				return nil, err
			}
			return check(ctx, all)
		},
		Apply: func(ctx context.Context) error {
			all, err := objects()
			if err != nil {
				return err
			}
			return apply(ctx, all)
		},
	}
}

// Apply sends the objects to the API server by server-side apply. Objects
// that do not depend on one another are sent concurrently.
func Apply(ctx context.Context, connect Connect, objects []*Object) error {
	server, err := dial(connect)
	if err != nil {
		return err
	}
	for wave := range 3 {
		group, ctx := errgroup.WithContext(ctx)
		for _, object := range objects {
			if rank(object) == wave {
				group.Go(func() error { return server.put(ctx, object) })
			}
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Missing lists the changes that Apply would make, one per line. Without a
// kubeconfig there is no cluster yet, so all objects are missing.
func Missing(ctx context.Context, connect Connect, objects []*Object) (step.Diff, error) {
	server, err := dial(connect)
	if errors.Is(err, fs.ErrNotExist) {
		return step.Diff{fmt.Sprintf("apply %d objects", len(objects))}, nil
	}
	if err != nil {
		return nil, err
	}
	lines, errs := make([]string, len(objects)), make([]error, len(objects))
	var group errgroup.Group
	for i, object := range objects {
		group.Go(func() error { lines[i], errs[i] = server.missing(ctx, object); return nil })
	}
	_ = group.Wait()
	if err := first(errs); err != nil {
		return nil, NoAnswer(fmt.Errorf("compare %d objects: %w", len(objects), err))
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" }), nil
}

// first returns the first error that the API server itself returned. If there
// is none, it returns the first connection error.
func first(errs []error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return errors.As(err, new(apierrors.APIStatus)) }); i >= 0 {
		return errs[i]
	}
	return cmp.Or(errs...)
}

// server is one API server during one Apply or Missing.
type server struct {
	dynamic.Interface
	kinds
}

func dial(connect Connect) (*server, error) {
	config, err := connect()
	if err != nil {
		return nil, err
	}
	client, err := clientFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	found := map[schema.GroupVersionKind]metav1.APIResource{}
	return &server{Interface: objects, kinds: kinds{config: config, client: client, found: found}}, nil
}

func (s *server) at(o *Object) (dynamic.ResourceInterface, error) {
	resource, namespaced, err := s.resource(o)
	if err != nil {
		return nil, err
	}
	if !namespaced {
		return s.Resource(resource), nil
	}
	return s.Resource(resource).Namespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault)), nil
}

func (s *server) apply(ctx context.Context, o *Object, dryRun ...string) (*Object, error) {
	resource, err := s.at(o)
	if err != nil {
		return nil, err
	}
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true, DryRun: dryRun}
	return resource.Apply(ctx, o.GetName(), o, options)
}

// put applies an object and retries errors that pass while a server starts,
// such as a missing namespace or a missing role of the client.
func (s *server) put(ctx context.Context, o *Object) error {
	err := step.Until(ctx, func(ctx context.Context) error {
		_, err := s.apply(ctx, o)
		if err != nil && addressTaken(err) {
			return errors.Join(err, s.freeAddress(ctx, o))
		}
		if err != nil && permanent(err) {
			return step.Final(err)
		}
		return err
	}, nil)
	if err != nil {
		return fmt.Errorf("apply %s: %w", title(o), err)
	}
	return nil
}

// permanent reports whether the API server refuses the object itself. For a
// field of the wrong type it answers with an internal error (500), as for
// transient errors, so only the text identifies it.
// https://github.com/kubernetes/apimachinery/blob/v0.37.2/pkg/util/managedfields/internal/structuredmerge.go#L147
func permanent(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) ||
		apierrors.IsUnauthorized(err) ||
		strings.HasPrefix(err.Error(), "failed to create typed patch object")
}

// missing compares the live object with the result of a dry run of Apply,
// because only the server knows its defaults. The dry runs are more than half of the
// work of the API server in a run that changes nothing, so an object whose fields show a difference needs none.
func (s *server) missing(ctx context.Context, o *Object) (string, error) {
	resource, err := s.at(o)
	if meta.IsNoMatchError(err) {
		return "apply " + title(o), nil
	}
	if err != nil {
		return "", err
	}
	// A controller may write between the requests, so a difference is checked again.
	for range 3 {
		live, err := resource.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "apply " + title(o), nil
		}
		if err != nil {
			return "", err
		}
		if applied(live, o) {
			return "", nil
		}
		goal, err := s.apply(ctx, o, metav1.DryRunAll)
		if err != nil {
			return "", err
		}
		if reflect.DeepEqual(essence(live), essence(goal)) {
			return "", nil
		}
	}
	return "change " + title(o), nil
}

func essence(o *Object) map[string]any {
	content := o.DeepCopy().Object
	delete(content, "status")
	for _, volatile := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(content["metadata"].(map[string]any), volatile)
	}
	return content
}
