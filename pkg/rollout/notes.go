package rollout

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// Annotations are the phases that hosts have noted, each in an annotation of its node. A kubelet
// may write it on its own node.
type Annotations struct {
	API        kube.Connect
	Annotation string
	Operation  string // for errors: "the rotation"
}

// Note notes that the host of a node has reached a phase.
func (n Annotations) Note(ctx context.Context, p OperationPhase, node string) error {
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, n.Annotation, p)
	options := metav1.PatchOptions{FieldManager: kube.FieldManager}
	if _, err := client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, options); err != nil {
		return fmt.Errorf("note on node %s the phase of %s: %w", node, n.Operation, err)
	}
	return nil
}

// Behind returns the hosts that have not noted a phase.
func (n Annotations) Behind(ctx context.Context, p OperationPhase, hosts []string) (names []string, err error) {
	client, err := n.API.Client()
	if err != nil {
		return nil, err
	}
	for _, host := range hosts {
		noted, err := n.read(ctx, client, host)
		if err != nil {
			return nil, err
		}
		if noted != p.String() {
			names = append(names, host)
		}
	}
	return names, nil
}

// Passed reports whether the host of a node has noted a later phase, or a phase of a later
// operation.
func (n Annotations) Passed(ctx context.Context, p OperationPhase, node string) (bool, error) {
	client, err := n.API.Client()
	if err != nil {
		return false, err
	}
	noted, err := n.read(ctx, client, node)
	return err == nil && p.before(noted), err
}

// read returns what a host has noted, or "" if it has noted nothing or has no node.
func (n Annotations) read(ctx context.Context, client kubernetes.Interface, node string) (string, error) {
	found, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the phase of node %s: %w", node, err)
	}
	return found.Annotations[n.Annotation], nil
}
