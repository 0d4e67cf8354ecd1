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

// follow adopts the shared settings of the cluster that this host joins. On an
// installed host it only adopts the shared settings that cannot change, because
// the others may have changed since.
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

// knownHandover is what the saved settings say, on a host that has joined.
func (h *Host) knownHandover() join.Handover {
	saved := h.saved.Config
	if !h.installed() || h.saved.Lost != nil || h.saved.Role == Master && !saved.Join {
		return join.Handover{}
	}
	return join.Handover{Server: h.balancedAPI(), ServerVersion: saved.KubernetesVersion, Settings: saved.Shared()}
}

func (h *Host) target() join.Target {
	token, _ := join.ParseToken(h.Config.Token) // their forms were checked with the config
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

// takeOver is the row's part of a control plane that joins; the first one is
// handed nothing.
func (h *Host) takeOver() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.join.Save()}
}

// spendToken is the row's part of a control plane that joins.
func (h *Host) spendToken() []step.Step {
	if !h.Config.Join {
		return nil
	}
	return []step.Step{h.join.Spend(kube.Kubeconfig(controlplane.AdminConf))}
}

// keepJoined has a control plane that joined stay one that did, also when it is
// not told again.
func (h *Host) keepJoined() {
	if h.saved.Role != Master {
		return
	}
	if !h.saved.Config.Join {
		h.Config.Join = h.Config.Join && !h.isOurs(h.Config.CACertHash)
		return
	}
	h.Config.Join = true
	if h.Config.MasterIP == "" {
		h.Config.MasterIP = h.saved.Config.MasterIP
	}
}

// isOurs reports whether hash is that of the cluster this host is the first
// control plane of: to be told to join that is to be told nothing new.
func (h *Host) isOurs(hash string) bool {
	data, err := h.Files.Read(join.ClusterCAFile)
	if err != nil {
		return false
	}
	own, err := join.CAHashOf(data)
	return err == nil && own == hash
}

// firstProblem keeps the first control plane of one cluster from joining
// another.
func (h *Host) firstProblem(role string) error {
	if role != Master || !h.Config.Join || h.saved.Role != Master || h.saved.Config.Join {
		return nil
	}
	return &step.Problem{Name: "role", Text: "--join: this host is the first control plane of another cluster",
		Remedy: "leave --join out to repair it, or run `kube-bootstrap turndown` first"}
}
