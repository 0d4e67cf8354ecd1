package local

import (
	"net"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
)

// follow adopts the shared settings of the cluster that this host joins. An
// installed host adopts only the settings that cannot change, because the user may
// have changed the others on this host.
func (h *Host) follow(theirs config.Config) {
	which := config.IsShared
	if h.Saved.Installed() {
		which = config.SharedFixed
	}
	cfg, refused := h.Config.Keep(which, theirs, h.Given)
	h.Config, h.Refused = cfg, append(h.Refused, refused...)
}

func joining(h *Host) *join.Joining {
	joining := &join.Joining{Files: h.Files, Target: target(h), Known: knownHandover(h)}
	if h.Config.Join {
		joining.Shares = controlplane.SharedFiles()
	}
	return joining
}

// knownHandover returns the join data in the saved settings of a host that
// has joined.
func knownHandover(h *Host) join.Handover {
	saved := h.Saved.Config
	if !h.Saved.Installed() || h.Saved.Lost != nil || h.Saved.Role == Master && !saved.Join {
		return join.Handover{}
	}
	return join.Handover{Server: BalancedAPI(h), ServerVersion: saved.KubernetesVersion, Settings: file.Shared(saved)}
}

func target(h *Host) join.Target {
	token, _ := join.ParseToken(h.Config.Token) // the formats are validated with the configuration
	key, _ := certkey.Parse(h.Config.CertificateKey)
	kind := join.ForWorker
	if h.Config.Join {
		kind = join.ForControlPlane
	}
	return join.Target{
		Host: h.Config.HostName, Kind: kind,
		Server: net.JoinHostPort(h.Config.MasterIP, strconv.Itoa(h.Config.APIServerPort)),
		Token:  token, CAHash: h.Config.CACertHash, Key: key,
	}
}

// keepJoined sets Join on a control plane that joined earlier, also without
// --join. On the first control plane it clears Join if the user names this
// very cluster.
func (h *Host) keepJoined() {
	if h.Saved.Role != Master {
		return
	}
	if !h.Saved.Config.Join {
		h.Config.Join = h.Config.Join && !createdHere(h, h.Config.CACertHash)
		return
	}
	h.Config.Join = true
	if h.Config.MasterIP == "" {
		h.Config.MasterIP = h.Saved.Config.MasterIP
	}
}

// createdHere reports whether hash is the CA hash of the cluster that this host
// created, which makes --join a no-op.
func createdHere(h *Host, hash string) bool {
	data, err := h.Files.Read(join.ClusterCAFile)
	if err != nil {
		return false
	}
	own, err := join.CAHashOf(data)
	return err == nil && own == hash
}
