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
		return "", &step.Problem{Name: "node-alive", Text: n.Name + " at " + ip + " is alive", Remedy: "run `kube-bootstrap turndown` on it"}
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
