// Package controlplane makes a host a control plane: its certificates, and the API
// server, controller manager and scheduler as static pods with what they read.
package controlplane

import (
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"path"
	"strconv"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// Paths on the host.
const (
	Dir            = "/etc/kubernetes"
	PKIDir         = Dir + "/pki"
	ManifestDir    = Dir + "/manifests"
	APIServerPod   = ManifestDir + "/kube-apiserver.yaml"
	AdminConf      = Dir + "/admin.conf"
	SuperAdminConf = Dir + "/super-admin.conf" // rights that do not depend on RBAC; administrators may remove it
	AgentConf      = Dir + "/kube-bootstrap-agent.conf"
	ConfigDir      = Dir + "/apiserver"
	auditDir       = "/var/log/kubernetes/audit"
	podLogDir      = "/var/log/pods"
)

const (
	// AdminGroup is the group of AdminConf. Its rights are a binding that can be
	// taken away, unlike those of system:masters.
	AdminGroup = "kube-bootstrap:cluster-admins"
	// AgentGroup is the group of AgentConf. It may read nodes, approve and sign the
	// certificates of hosts, and read, change and delete Secrets in kube-system.
	AgentGroup = "kube-bootstrap:agents"

	// serviceName is the name of the API server for pods, without the DNS domain.
	serviceName = "kubernetes.default.svc"
)

// HostSettings is what the certificates, static pods and API server of a host have in common.
type HostSettings struct {
	Files       host.Files
	HostName    string // the node's name
	IP          string // where other hosts reach the API server
	APIPort     int
	ServiceCIDR netip.Prefix
	DNSDomain   string
	Joins       bool          // a joining control plane: it receives the shared files and creates none of them
	LeafLife    time.Duration // how long certificates are valid; 0: pki.LeafLife
}

// Server is the URL of this host's API server.
func (h HostSettings) Server() string {
	return "https://" + net.JoinHostPort(h.IP, strconv.Itoa(h.APIPort))
}

// modeOf lets only root read a file, unless it contains certificates or public keys.
func modeOf(file string) fs.FileMode {
	if ext := path.Ext(file); ext == ".crt" || ext == ".pub" {
		return 0o644
	}
	return 0o600
}

// MinLeafLife is the shortest lifetime of certificates with which a cluster
// works: the agent looks at them every few minutes.
const MinLeafLife = 15 * time.Minute

// LeafLifeFile exists if certificates have another lifetime than the usual one.
const LeafLifeFile = host.StateDir + "/certificate-lifetime.json"

var life = host.Record[time.Duration]{Path: LeafLifeFile, Valid: ValidLeafLife}

// ValidLeafLife refuses a lifetime that is too short or too long.
func ValidLeafLife(d time.Duration) error {
	if d < MinLeafLife || d > pki.LeafLife {
		return fmt.Errorf("a lifetime of %s: must be from %s to %s", d, MinLeafLife, pki.LeafLife)
	}
	return nil
}

// SetLeafLife has the certificates of this host issued for d from now on.
func SetLeafLife(files host.Files, d time.Duration) error { return life.Write(files, d) }

// ReadLeafLife returns the recorded lifetime of certificates, or 0 for the usual one.
func ReadLeafLife(files host.Files) time.Duration {
	d, _ := life.Read(files)
	return d
}
