package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// departs is the annotation of a node whose host asks to be removed from the
// cluster. A kubelet may annotate its own node, but must not delete it.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go#L225
const departs = "kube-bootstrap.dev/departs"

// Depart asks the control planes to remove this node and the rights of its
// host, and waits until the node is deleted.
func (n Node) Depart(ctx context.Context) error {
	asked := false
	return step.Until(ctx, func(ctx context.Context) error {
		_, err := n.get(ctx)
		if removed(err) || asked && apierrors.IsForbidden(err) {
			return nil
		}
		if err == nil && !asked {
			err = n.patch(ctx, `{"metadata":{"annotations":{"`+departs+`":"true"}}}`)
			asked = err == nil
		}
		if errors.Is(err, fs.ErrNotExist) { // an earlier turndown has removed the kubeconfig
			return step.Final(err)
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("no control plane has removed node %s yet", n.Name)
	}, nil)
}

// Nobody is the address of the authorization webhook for hosts that were removed.
// Nobody listens there, so an API server refuses these hosts, with an internal error
// that contains the address.
const Nobody = "https://127.0.0.1:1"

// removed reports whether the answer of an API server shows that the cluster has
// removed this node, also on the request of an earlier run.
func removed(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), Nobody)
}

// List returns all nodes of the cluster.
func List(ctx context.Context, api kube.Connect) ([]corev1.Node, error) {
	return kube.Ask(api, func(client kubernetes.Interface) ([]corev1.Node, error) {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		return nodes.Items, nil
	})
}

// Names returns the names of the nodes for which selected returns true.
func Names(ctx context.Context, api kube.Connect, selected func(*corev1.Node) bool) (names []string, err error) {
	nodes, err := List(ctx, api)
	for i := range nodes {
		if selected(&nodes[i]) {
			names = append(names, nodes[i].Name)
		}
	}
	return names, err
}

// Departs reports whether a node asks to be removed.
func Departs(n *corev1.Node) bool { return n.Annotations[departs] != "" }

// Exists reports whether the cluster has the node.
func (n Node) Exists(ctx context.Context) (bool, error) {
	_, err := n.get(ctx)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// DropPods deletes the pods of this node without waiting for its kubelet. An API server
// accepts the token of a pod as long as the pod exists.
func (n Node) DropPods(ctx context.Context) error {
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", n.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", n.Name, err)
	}
	return host.Each(pods.Items, func(p corev1.Pod) error {
		err := client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &p.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete pod %s/%s: %w", p.Namespace, p.Name, err)
		}
		return nil
	})
}

// Dead returns the address of a node whose kubelet does not answer, or "" if
// the node does not exist. It returns a problem if the kubelet answers,
// because that node must leave by itself.
func (n Node) Dead(ctx context.Context) (ip string, err error) {
	node, err := n.get(ctx)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ip = a.Address
		}
	}
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if speaksTLS(ctx, net.JoinHostPort(ip, strconv.Itoa(port))) {
		return "", &step.Problem{
			Name: "node-alive", Text: n.Name + " at " + ip + " is alive",
			Remedy: "run `kube-bootstrap turndown` on it, or, if somebody else controls it, `kube-bootstrap forget " +
				"--compromised " + n.Name + "` on a control plane",
		}
	}
	return ip, nil
}

// speaksTLS reports whether a TLS server answers. It does not verify the
// certificate, because a dead machine has no server at all.
func speaksTLS(ctx context.Context, address string) bool {
	ctx, cancel := step.Checking(ctx) // a host that is off does not refuse the connection
	defer cancel()
	conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		return conn.Close() == nil
	}
	var stranger *tls.CertificateVerificationError
	return errors.As(err, &stranger)
}
