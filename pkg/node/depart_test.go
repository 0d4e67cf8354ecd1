package node

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAnAPIServerRefusesARemovedHost: with an internal error, because the
// authorization webhook for removed hosts does not exist.
func TestAnAPIServerRefusesARemovedHost(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	for err, want := range map[error]bool{
		apierrors.NewInternalError(errors.New("Post \"https://127.0.0.1:1/\": connection refused")): true,
		apierrors.NewForbidden(nodes, "web", nil):                                                   true,
		apierrors.NewNotFound(nodes, "web"):                                                         false,
		apierrors.NewServiceUnavailable("not yet ready"):                                            false,
		errors.New("connection refused"):                                                            false,
	} {
		if refused(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}
