package membership

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// HoldsLastCopy reports whether this host has the only etcd member of its
// cluster.
func HoldsLastCopy(h *local.Host) bool {
	return h.Saved.Role == local.Master && len(parts.Others(h)) == 0 && etcd.HasData(h.Files)
}

// EtcdMembers returns the status of the etcd members. It must run on a
// control plane.
func EtcdMembers(ctx context.Context, h *local.Host) ([]etcd.MemberStatus, error) {
	return parts.Etcd(h).Status(h.Limited(ctx))
}

// Share uploads the encrypted certificate authorities for a further control
// plane, and returns the key to decrypt them.
func Share(ctx context.Context, h *local.Host) (certkey.Key, error) {
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	if err := renewal.NotRotating(ctx); err != nil {
		return certkey.Key{}, err
	}
	shared, err := controlplane.Shared(h.Files)
	if err != nil {
		return certkey.Key{}, err
	}
	client, err := kube.Kubeconfig(controlplane.AdminConf).Client()
	if err != nil {
		return certkey.Key{}, err
	}
	return join.Share(ctx, client, shared)
}
