package node

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

// TestAHostWithoutAKubeconfigDoesNotWait: an earlier turndown has removed the file.
func TestAHostWithoutAKubeconfigDoesNotWait(t *testing.T) {
	tries := 0
	ctx := step.WithReporter(t.Context(), func(string, int64, int64) { tries++ }) // each repeated try is reported
	n := Node{Name: "a", API: kube.Kubeconfig(filepath.Join(t.TempDir(), "kubelet.conf"))}
	if err := n.Depart(ctx); !errors.Is(err, fs.ErrNotExist) || tries > 0 {
		t.Errorf("got %v, %d tries", err, tries)
	}
}
