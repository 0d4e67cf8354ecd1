package node

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAnswersToARemovedNode: an API server refuses it with an internal error,
// because the authorization webhook for removed hosts does not exist.
func TestAnswersToARemovedNode(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for err, want := range map[error]bool{
		apierrors.NewInternalError(errors.New("Post \"https://127.0.0.1:1/\": connection refused")): true,
		apierrors.NewNotFound(nodes, "web"):                                     true,
		apierrors.NewInternalError(errors.New("etcdserver: request timed out")): false,
		apierrors.NewForbidden(nodes, "web", nil):                               false,
		apierrors.NewServiceUnavailable("not yet ready"):                        false,
		errors.New("connection refused"):                                        false,
	} {
		if removed(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}
