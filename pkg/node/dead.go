package node

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// deadLimit is longer than an API server tries to reach a kubelet.
const deadLimit = 40 * time.Second

// Dead returns the address of a node whose kubelet does not answer, none of a
// node that nobody knows. A kubelet that answers is a problem: its node is to
// leave by itself.
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
	err = n.askKubelet(ctx)
	if err == nil {
		return "", &step.Problem{Name: "node-alive", Text: n.Name + " at " + ip + " is alive", Remedy: "run `kube-bootstrap turndown` on it"}
	}
	if apierrors.IsServiceUnavailable(err) {
		return ip, nil // the API server's word for a kubelet that it does not reach
	}
	return "", err
}

// askKubelet has the API server do so, as it has a certificate for that.
func (n Node) askKubelet(ctx context.Context) error {
	client, err := n.API.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deadLimit)
	defer cancel()
	return client.CoreV1().RESTClient().Get().Resource("nodes").Name(n.Name).SubResource("proxy").Suffix("healthz").Do(ctx).Error()
}
