package local

import (
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SkewProblem compares the wanted versions with those in force, and the etcd
// version with the newest version that has used the data directory
// [version-skew].
func SkewProblem(h *Host, role string) error {
	if !h.Saved.Installed() {
		return nil
	}
	running := h.Saved.Config.KubernetesVersion
	problems := []error{skewed(catalog.CheckChange(running, h.Config.KubernetesVersion),
		"keep "+running+", take a newer patch of it, or set up a new cluster after `kube-bootstrap turndown`")}
	started, err := etcd.Started(h.Files)
	if err != nil {
		return err
	}
	if started != "" && role == Master {
		problems = append(problems, skewed(catalog.CheckEtcdChange(started, h.Versions.Etcd), "set ETCD_VERSION to "+started+" or newer"))
	}
	return errors.Join(problems...)
}

// joinSkewProblem compares the wanted version with the version of the API
// server that this host joins [version-skew].
func joinSkewProblem(h *Host, server string) error {
	wanted, remedy := h.Versions.Kubernetes, "set K8S_VERSION to "+server+", or leave it out"
	if h.Config.Join {
		return skewed(catalog.CheckControlPlane(wanted, server), remedy)
	}
	return skewed(catalog.CheckKubelet(wanted, server), remedy)
}

// skewed returns the problem that versions do not fit; nil if err is nil.
func skewed(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "version-skew", Text: err.Error(), Remedy: remedy}
}
