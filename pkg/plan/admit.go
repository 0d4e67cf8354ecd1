package plan

import (
	"context"
	"crypto"
	"errors"
	"net/netip"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// admit reserves a subnet for a host, unless another CNI plugin provides the
// network, and creates an etcd user that may write the lease of that subnet.
func (h *Host) admit(ctx context.Context, client *clientv3.Client, host, user string) error {
	key := ""
	if h.ownNetwork() {
		subnet, err := h.network().Reserve(ctx, client, host)
		if err != nil {
			return err
		}
		key = flannel.LeaseKey(subnet)
	}
	return etcd.Admit(ctx, client, host, user, key)
}

// expel removes a host's users and its subnet from etcd. The users go first,
// so that the host cannot lease the subnet again.
func (h *Host) expel(ctx context.Context, client *clientv3.Client, host string) error {
	if err := etcd.Revoke(ctx, client, host); err != nil {
		return err
	}
	return flannel.Release(ctx, client, host)
}

// admitted is the step with which a control plane admits itself. The agents
// of control planes admit workers.
func (h *Host) admitted() step.Step {
	name := h.Config.HostName
	user := etcd.HostUser(name)
	new := step.Diff{"add etcd user " + user}
	return step.Step{
		Name: "give this host its place in etcd",
		Check: func(ctx context.Context) (step.Diff, error) {
			return h.etcd().Look(ctx, new, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
				if !h.ownNetwork() {
					return etcd.MissingHost(ctx, client, name, user, "")
				}
				subnet, err := h.network().Reserved(ctx, client, name)
				if err != nil || !subnet.IsValid() {
					return step.Diff{"reserve a subnet for this host"}, err
				}
				return etcd.MissingHost(ctx, client, name, user, flannel.LeaseKey(subnet))
			})
		},
		Apply: func(ctx context.Context) error {
			return h.withEtcd(ctx, func(client *clientv3.Client) error {
				// The user of a removed worker of this name is no longer refused: a
				// control plane issues its own certificates.
				return errors.Join(h.admit(ctx, client, name, user), etcd.DropRemoved(ctx, client, name))
			})
		},
	}
}

// withEtcd calls do with an etcd client of this control plane.
func (h *Host) withEtcd(ctx context.Context, do func(*clientv3.Client) error) error {
	client, err := h.etcd().Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// flannelCertificate is the step with which a worker requests flannel's
// certificate from a control plane, which admits the worker at the same time.
func (h *Host) flannelCertificate() step.Step {
	return join.Flannel{Joining: h.join, User: etcd.HostUser(h.Config.HostName)}.Fetch()
}

func (h *Host) issuer() join.Issuer {
	return join.Issuer{
		API: kube.Kubeconfig(controlplane.AgentConf), User: etcd.HostUser,
		ControlPlanes:   h.controlPlaneNames,
		CertificateUser: etcd.CertificateUser,
		Admit: func(ctx context.Context, host, user string) error {
			return h.withEtcd(ctx, func(client *clientv3.Client) error { return h.admit(ctx, client, host, user) })
		},
		Sign: func(user string, public crypto.PublicKey) ([]byte, error) {
			authority, err := h.etcdAuthority()
			if err != nil {
				return nil, err
			}
			return authority.Sign(pki.Request{CommonName: user, Client: true, Life: h.leafLife()}, public, time.Now())
		},
	}
}

func (h *Host) etcdAuthority() (*pki.Authority, error) {
	cert, err := h.Files.Read(controlplane.EtcdCA + ".crt")
	if err != nil {
		return nil, err
	}
	key, err := h.Files.Read(controlplane.EtcdCA + ".key")
	if err != nil {
		return nil, err
	}
	return pki.ParseAuthority(pki.Pair{Cert: cert, Key: key})
}

func (h *Host) controlPlaneNames(ctx context.Context) (names []string, err error) {
	err = h.withEtcd(ctx, func(client *clientv3.Client) error {
		listed, err := etcd.Listed(ctx, client)
		for _, e := range listed {
			names = append(names, e.Name)
		}
		return err
	})
	return names, err
}

// knownHosts lists the control planes and the hosts with a flannel lease.
func (h *Host) knownHosts(ctx context.Context) (all []join.Host, err error) {
	err = h.withEtcd(ctx, func(client *clientv3.Client) error {
		listed, err := etcd.Listed(ctx, client)
		if err != nil {
			return err
		}
		for _, e := range listed {
			ip, _ := netip.ParseAddr(e.IP) // written by the host itself
			all = append(all, join.Host{Name: e.Name, IP: ip, ControlPlane: true})
		}
		holders, err := flannel.Holders(ctx, client)
		for name, ip := range holders {
			all = append(all, join.Host{Name: name, IP: ip})
		}
		return err
	})
	return all, err
}

// Issue answers the pending requests for flannel's certificates. The agent
// calls it.
func (h *Host) Issue(ctx context.Context) error {
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	return h.issuer().Issue(ctx)
}

// LetGo removes the workers that asked to leave the cluster. Control planes
// remove themselves from etcd. The agent calls it.
func (h *Host) LetGo(ctx context.Context) error {
	ctx, cancel := step.Limited(h.limited(ctx))
	defer cancel()
	names, err := node.Names(ctx, kube.Kubeconfig(controlplane.AgentConf), node.Departs)
	if err != nil || len(names) == 0 {
		return err
	}
	controlPlanes, err := h.controlPlaneNames(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if !slices.Contains(controlPlanes, name) {
			errs = append(errs, h.removeHost(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// removeHost removes a worker's rights, and then its node.
func (h *Host) removeHost(ctx context.Context, name string) error {
	if err := h.withEtcd(ctx, func(client *clientv3.Client) error {
		return errors.Join(h.expel(ctx, client, name), h.banNode(ctx, client, name))
	}); err != nil {
		return err
	}
	return h.removeNode(ctx, name)
}
