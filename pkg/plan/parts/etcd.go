package parts

import (
	"context"
	"crypto/tls"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Etcd is the etcd of a control plane: as its clients reach it, as a member, and its container.
type Etcd struct {
	Client    etcd.Client
	Member    etcd.Member
	Container etcd.MemberContainer
	joins     bool
}

func newEtcd(h *local.Host) Etcd {
	root := etcd.Credentials{
		Files: h.Files, CA: controlplane.EtcdCA + ".crt",
		Cert: controlplane.EtcdRoot + ".crt", Key: controlplane.EtcdRoot + ".key",
		Issue: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) { return issueRoot(h.Files, asked) },
	}
	client, first := etcd.Client{Credentials: root, IP: h.IP()}, ""
	if h.Config.Join {
		first = addresses.Text(h.Config.MasterIP)
	}
	member := etcd.Member{
		Client: client, Data: etcd.DataOf(h.Files), Name: h.Config.HostName, Peers: others(h.Files, h.IP(), first),
		Addresses: otherAddresses(h.Config.IPAddress, h.Config.FlannelNetwork.IPv4()),
	}
	container := etcd.MemberContainer{
		Member: member, Docker: local.BootstrapDocker, Image: h.Image("etcd"), Version: h.Versions.Etcd,
		RestartPolicy: h.Config.RestartPolicy, ExtraArgs: h.Config.ExtraArgs("etcd"),
		ServingCert: controlplane.EtcdServer + ".crt",
		ServingKey:  controlplane.EtcdServer + ".key",
		PeerCA:      controlplane.EtcdPeerCA + ".crt",
		PeerCert:    controlplane.EtcdPeer + ".crt",
		PeerKey:     controlplane.EtcdPeer + ".key",
		PeerName:    controlplane.PeerName,
	}
	return Etcd{Client: client, Member: member, Container: container, joins: h.Config.Join}
}

// Start starts the etcd of this host, as the first or as a joining member.
func (e Etcd) Start() step.Step {
	if e.joins {
		return e.Container.Join()
	}
	return e.Container.Start()
}

// StartAsMember is Start for the agent and for renewals: only a run of `master` adds this
// host to the members of etcd.
func (e Etcd) StartAsMember() step.Step {
	if e.joins {
		return e.Container.Stay()
	}
	return e.Container.Start()
}

// Alone returns the etcd of this host without other members.
func (e Etcd) Alone() Etcd {
	e.Member.Peers, e.Container.Member.Peers = nil, nil
	return e
}

// ControlPlaneNames lists the control planes in etcd.
func (e Etcd) ControlPlaneNames(ctx context.Context) (names []string, err error) {
	err = e.Client.Do(ctx, func(client *clientv3.Client) error {
		listed, err := etcd.Listed(ctx, client)
		for _, e := range listed {
			names = append(names, e.Name)
		}
		return err
	})
	return names, err
}

// issueRoot makes root's certificate for an etcd that trusts another authority than that of
// the file: the etcd of an earlier program trusts EtcdCA until `master` runs on its host.
func issueRoot(files host.Files, asked *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	var refused error
	for _, authority := range []string{controlplane.EtcdPeerCA, controlplane.EtcdCA} {
		pair, err := issueClient(files, authority, "root")
		if err != nil {
			return nil, err
		}
		if refused = asked.SupportsCertificate(pair); refused == nil {
			return pair, nil
		}
	}
	return nil, refused
}
