// Package membership admits hosts to a cluster and removes them: certificates,
// etcd users, subnets and nodes.
package membership

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"net/netip"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// admit reserves a subnet for a host, unless another CNI plugin provides the
// network, and creates an etcd user that may write the lease of that subnet.
func admit(ctx context.Context, network parts.PodNetwork, client *clientv3.Client, host, user string) error {
	key := ""
	if network.Leases() {
		subnet, err := network.Flannel.Reserve(ctx, client, host)
		if err != nil {
			return err
		}
		key = flannel.LeaseKey(subnet)
	}
	return etcd.Admit(ctx, client, host, user, key)
}

// admitWorker is admit for a further certificate of a worker.
func admitWorker(ctx context.Context, network parts.PodNetwork, client *clientv3.Client, host, user string) error {
	if err := admit(ctx, network, client, host, user); err != nil {
		return err
	}
	return etcd.DropFormer(ctx, client, host, user)
}

// expel removes a host's users and its subnet from etcd. The users go first,
// so that the host cannot lease the subnet again.
func expel(ctx context.Context, client *clientv3.Client, host string) error {
	if err := etcd.Revoke(ctx, client, host); err != nil {
		return err
	}
	return flannel.Release(ctx, client, host)
}

// Admitted is the step with which a control plane admits itself. The agents
// of control planes admit workers.
func Admitted(own etcd.Member, network parts.PodNetwork) step.Step {
	new := step.Diff{"add etcd user " + etcd.HostUser(own.Name)}
	return own.Client.Step("admit", "give this host its place in etcd", new,
		func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
			return missingPlace(ctx, own.Name, network, client)
		},
		func(ctx context.Context, client *clientv3.Client) error {
			return takePlace(ctx, own.Name, network, client)
		})
}

// missingPlace lists the changes that takePlace would make.
func missingPlace(
	ctx context.Context, name string, network parts.PodNetwork, client *clientv3.Client,
) (diff step.Diff, err error) {
	key := ""
	removed, err := etcd.ReadRemoved(ctx, client, name)
	if err := cmp.Or(err, etcd.CheckName(ctx, client, name)); err != nil {
		return nil, err
	}
	if removed != nil {
		diff = append(diff, "accept the certificates of this host again")
	}
	if network.Leases() {
		subnet, err := network.Flannel.Reserved(ctx, client, name)
		if err != nil || !subnet.IsValid() {
			return append(diff, "reserve a subnet for this host"), err
		}
		key = flannel.LeaseKey(subnet)
	}
	missing, err := etcd.MissingHost(ctx, client, name, etcd.HostUser(name), key)
	return append(diff, missing...), err
}

// takePlace admits this host. The user of a removed worker of this name is no longer
// refused: a control plane issues its own certificates.
func takePlace(ctx context.Context, name string, network parts.PodNetwork, client *clientv3.Client) error {
	return errors.Join(etcd.DropRemoved(ctx, client, name), admit(ctx, network, client, name, etcd.HostUser(name)))
}

// Issue answers the pending requests for flannel's certificates.
func Issue(ctx context.Context, own parts.Etcd, network parts.PodNetwork) error {
	files := own.Client.Credentials.Files
	return join.Issuer{
		API: kube.Kubeconfig(controlplane.AgentConf), User: etcd.HostUser,
		ControlPlanes:   own.ControlPlaneNames,
		CertificateUser: etcd.CertificateUser,
		Admit: func(ctx context.Context, host, user string) error {
			return own.Client.Do(ctx, func(client *clientv3.Client) error {
				return admitWorker(ctx, network, client, host, user)
			})
		},
		Sign: func(user string, public crypto.PublicKey) ([]byte, error) {
			authority, err := controlplane.Signer(files, controlplane.EtcdCA)
			if err != nil {
				return nil, err
			}
			request := pki.CertificateRequest{CommonName: user, Client: true, Life: controlplane.ReadLeafLife(files)}
			return authority.Sign(request, public, time.Now())
		},
	}.Issue(ctx)
}

// KnownHosts returns the control planes in the list, and the hosts that have leased their subnet.
func KnownHosts(ctx context.Context, own etcd.Client) (all []join.ClusterHost, err error) {
	err = own.Do(ctx, func(client *clientv3.Client) error {
		listed, err := etcd.Listed(ctx, client)
		if err != nil {
			return err
		}
		for _, e := range listed {
			ip, _ := netip.ParseAddr(e.IP) // written by the host itself
			all = append(all, join.ClusterHost{Name: e.Name, IP: ip, ControlPlane: true})
		}
		holders, err := flannel.Holders(ctx, client)
		for name, ip := range holders {
			all = append(all, join.ClusterHost{Name: name, IP: ip})
		}
		return err
	})
	return all, err
}

// HoldsLastCopy reports whether this control plane has the only member of etcd.
func HoldsLastCopy(own etcd.Member) bool { return len(own.Peers) == 0 && own.Data.Exist() }

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
