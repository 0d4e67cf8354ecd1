package parts

import (
	"context"
	"crypto/tls"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Etcd returns the client of this host's etcd.
func Etcd(h *local.Host) etcd.Client {
	root := etcd.Credentials{
		Files: h.Files, CA: controlplane.EtcdCA + ".crt", Cert: controlplane.EtcdRoot + ".crt", Key: controlplane.EtcdRoot + ".key",
		Issue: func(asked *tls.CertificateRequestInfo) (*tls.Certificate, error) { return issueRoot(h.Files, asked) },
	}
	return etcd.Client{Credentials: root, IP: h.Config.IPAddress}
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

// EtcdMember returns this host as a member of etcd.
func EtcdMember(h *local.Host) etcd.Member {
	return etcd.Member{
		Client: Etcd(h), Data: etcd.DataOf(h.Files),
		Name: h.Config.HostName, Addresses: addresses(h), Peers: Others(h),
	}
}

// EtcdServer returns the container of etcd.
func EtcdServer(h *local.Host) etcd.Container {
	return etcd.Container{
		Member: EtcdMember(h), Docker: local.BootstrapDocker, Image: h.Image("etcd"), Version: h.Versions.Etcd,
		RestartPolicy: h.Config.RestartPolicy, ExtraArgs: h.Config.ExtraArgs("etcd"),
		ServingCert: controlplane.EtcdServer + ".crt",
		ServingKey:  controlplane.EtcdServer + ".key",
		PeerCA:      controlplane.EtcdPeerCA + ".crt",
		PeerCert:    controlplane.EtcdPeer + ".crt",
		PeerKey:     controlplane.EtcdPeer + ".key",
		PeerName:    controlplane.PeerName,
	}
}

// StartEtcd starts the etcd of this host, as the first or as a joining member.
func StartEtcd(h *local.Host) step.Step {
	if h.Config.Join {
		return EtcdServer(h).Join()
	}
	return EtcdServer(h).Start()
}

// KeepEtcd is StartEtcd for the agent and for renewals: only a run of `master` adds this
// host to the members of etcd.
func KeepEtcd(h *local.Host) step.Step {
	if h.Config.Join {
		return EtcdServer(h).Stay()
	}
	return EtcdServer(h).Start()
}

// FlannelCertificate is the step with which a worker requests flannel's
// certificate from a control plane, which admits the worker at the same time.
func FlannelCertificate(h *local.Host) step.Step {
	return h.Join.FetchFlannel(etcd.HostUser(h.Config.HostName))
}

// ControlPlaneNames lists the control planes in etcd.
func ControlPlaneNames(h *local.Host) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (names []string, err error) {
		err = Etcd(h).Do(ctx, func(client *clientv3.Client) error {
			listed, err := etcd.Listed(ctx, client)
			for _, e := range listed {
				names = append(names, e.Name)
			}
			return err
		})
		return names, err
	}
}
