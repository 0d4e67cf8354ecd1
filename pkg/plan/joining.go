package plan

import (
	"net"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// follow adopts the shared settings of the cluster that this host joins. An
// installed host adopts only the settings that cannot change, because the user may
// have changed the others on this host.
func (h *Host) follow(theirs config.Config) {
	which := config.IsShared
	if h.installed() {
		which = config.SharedFixed
	}
	cfg, refused := h.Config.Keep(which, theirs, h.given)
	h.Config, h.refused = cfg, append(h.refused, refused...)
}

func (h *Host) joining() *join.Joining {
	joining := &join.Joining{Files: h.Files, Target: h.target(), Known: h.knownHandover()}
	if h.Config.Join {
		joining.Shares = controlplane.SharedFiles()
	}
	return joining
}

// knownHandover returns the join data in the saved settings of a host that
// has joined.
func (h *Host) knownHandover() join.Handover {
	saved := h.saved.Config
	if !h.installed() || h.saved.Lost != nil || h.saved.Role == Master && !saved.Join {
		return join.Handover{}
	}
	return join.Handover{Server: h.balancedAPI(), ServerVersion: saved.KubernetesVersion, Settings: saved.Shared()}
}

func (h *Host) target() join.Target {
	token, _ := join.ParseToken(h.Config.Token) // the formats are validated with the configuration
	key, _ := join.ParseCertificateKey(h.Config.CertificateKey)
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

// saveHandover returns the step with which a joining control plane saves its join
// data.
func (h *Host) saveHandover() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.join.Save()}
}

// spendToken returns the step with which a joining control plane deletes its
// token.
func (h *Host) spendToken() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.join.Spend(kube.Kubeconfig(controlplane.AdminConf))}
}

// keepJoined sets Join on a control plane that joined earlier, also without
// --join. On the first control plane it clears Join if the user names this
// very cluster.
func (h *Host) keepJoined() {
	if h.saved.Role != Master {
		return
	}
	if !h.saved.Config.Join {
		h.Config.Join = h.Config.Join && !h.createdHere(h.Config.CACertHash)
		return
	}
	h.Config.Join = true
	if h.Config.MasterIP == "" {
		h.Config.MasterIP = h.saved.Config.MasterIP
	}
}

// createdHere reports whether hash is the CA hash of the cluster that this host
// created, which makes --join a no-op.
func (h *Host) createdHere(hash string) bool {
	data, err := h.Files.Read(join.ClusterCAFile)
	if err != nil {
		return false
	}
	own, err := join.CAHashOf(data)
	return err == nil && own == hash
}

// firstProblem returns a problem if the first control plane of a cluster is
// told to join another one.
func (h *Host) firstProblem(role string) error {
	if role != Master || !h.Config.Join || h.saved.Role != Master || h.saved.Config.Join {
		return nil
	}
	return &step.Problem{Name: "role", Text: "--join: this host is the first control plane of another cluster",
		Remedy: "remove --join to repair this host, or run `kube-bootstrap turndown` first"}
}
