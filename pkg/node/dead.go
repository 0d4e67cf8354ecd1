package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

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
	port := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
	if speaksTLS(ctx, net.JoinHostPort(ip, strconv.Itoa(port))) {
		return "", &step.Problem{Name: "node-alive", Text: n.Name + " at " + ip + " is alive", Remedy: "run `kube-bootstrap turndown` on it"}
	}
	return ip, nil
}

// speaksTLS does not care whose certificate it is shown: a machine that died
// shows none.
func speaksTLS(ctx context.Context, address string) bool {
	ctx, cancel := step.Checking(ctx) // a host that is off does not even refuse the connection
	defer cancel()
	conn, err := (&tls.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		return conn.Close() == nil
	}
	var stranger *tls.CertificateVerificationError
	return errors.As(err, &stranger)
}
