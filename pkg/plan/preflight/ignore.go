package preflight

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// problemNames are the names that --ignore-preflight accepts: the names of
// the preflight checks and of their problems. test/architecture compares them
// with the source.
var problemNames = []string{
	"addon", "arch", "auto-remove", "backend-module", "bridge-netfilter", "ca-cert-hash", "certificate-key",
	"cgroup-cpu", "cgroup-memory", "cgroup-pids", "clock", "cluster-info", "cluster-info-forged", "cni-config",
	"cni-plugin", "containerd", "containerd-config", "containerd-pods", "containerd-registry",
	"containerd-version", "control-plane", "control-plane-unreachable", "daemon-json", "disk-inodes",
	"disk-space", "docker", "docker-flags", "docker-hangs", "docker-settings", "docker-stopped", "docker-unit",
	"docker-version", "etcd-version", "firewalld-strict", "flannel-backend", "flannel-backend-arch",
	"flannel-network", "flannel-network-in-use", "flannel-network-size", "inotify", "ip-address",
	"join-data-lost", "joined-another", "kernel", "load-balancer-addresses", "man-in-the-middle",
	"master-address", "net-interface", "network-overlap", "node-size", "node-taint", "node-unknown", "ports",
	"program-missing", "registry", "registry-answer", "registry-busy", "registry-ca", "registry-client-cert",
	"registry-denied", "registry-host", "registry-login", "registry-name", "registry-plain-http",
	"registry-settings", "registry-unreachable", "role", "swap", "token-format", "token-kind", "token-node",
	"token-unknown", "version-skew",
}

// firmNames are the names of problems that cannot be ignored: without what they miss, no run
// gets further. The names of settings, which refused changes have, are as firm.
var firmNames = []string{
	"addon-data", "bundle", "bundle-offer", "cluster-identity", "containerd-missing", "docker-missing", "images",
	"settings", "settings-lost", "unfinished",
}

// ProblemNames lists the names for --ignore-preflight, except the names of ports.
func ProblemNames() []string { return slices.Clone(problemNames) }

var portName = regexp.MustCompile(`^port-[0-9]+$`)

// CheckIgnored returns an error for each name that no problem has, or only problems that
// cannot be ignored, because ignoring it would have no effect.
func CheckIgnored(names []string) field.ErrorList {
	var errs field.ErrorList
	for _, name := range names {
		if slices.Contains(problemNames, name) || portName.MatchString(name) {
			continue
		}
		text := "preflight has no problem of this name" + spelling.Meant(name, problemNames)
		if slices.Contains(firmNames, name) || config.IsSetting(name) { // a refused change has the name of its flag
			text = "this problem cannot be ignored; solve it as its message says, and omit the name here"
		}
		text += "; the names are port-NUMBER, " + strings.Join(problemNames, ", ")
		errs = append(errs, field.Invalid(field.NewPath("ignorePreflight"), name, text))
	}
	return errs
}
