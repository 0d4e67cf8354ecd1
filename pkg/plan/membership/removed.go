package membership

import (
	"context"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// banNode makes the API servers refuse the certificates of a removed worker's
// kubelet. It first deletes its requests, so that only a certificate that is
// later requested with a token is accepted again.
func banNode(ctx context.Context, h *local.Host, client *clientv3.Client, name string) error {
	requests := join.NodeCertificates{API: parts.Anywhere(h, name).API}
	if err := requests.Delete(ctx, name); err != nil {
		return err
	}
	return etcd.NoteRemoved(ctx, client, etcd.Removed{Host: name, Until: time.Now().Add(pki.LeafLife)})
}

// RefuseRemoved configures this host's API server to refuse removed nodes.
// The agent calls it.
func RefuseRemoved(ctx context.Context, h *local.Host) error {
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	return parts.Etcd(h).Do(ctx, func(client *clientv3.Client) error {
		removed, err := etcd.ListRemoved(ctx, client, time.Now())
		if err != nil {
			return err
		}
		// If the API server does not answer, the removed nodes in etcd are still
		// refused.
		acceptErr := acceptReturned(ctx, h, client, removed)
		var nodes []controlplane.RemovedNode
		for _, r := range removed {
			nodes = append(nodes, controlplane.RemovedNode{Name: r.Host, Accepted: r.Accepted})
		}
		return errors.Join(acceptErr, controlplane.RefuseRemoved(h.Files, nodes))
	})
}

// acceptReturned accepts the certificates of workers that joined again:
// certificates that were requested with a token or with an accepted
// certificate.
func acceptReturned(ctx context.Context, h *local.Host, client *clientv3.Client, removed []etcd.Removed) error {
	if len(removed) == 0 {
		return nil
	}
	issued, err := join.NodeCertificates{API: kube.Kubeconfig(controlplane.AgentConf)}.List(ctx)
	if err != nil {
		return err
	}
	for _, c := range issued {
		at := slices.IndexFunc(removed, func(r etcd.Removed) bool { return r.Host == c.Node })
		if at < 0 || slices.Contains(removed[at].Accepted, c.SHA256) || c.By != "" && !slices.Contains(removed[at].Accepted, c.By) {
			continue
		}
		if err := removed[at].Accept(ctx, client, c.SHA256); err != nil {
			return err
		}
		removed[at].Accepted = append(removed[at].Accepted, c.SHA256)
	}
	return nil
}
