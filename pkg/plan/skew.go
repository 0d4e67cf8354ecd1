package plan

import (
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// skewProblem compares the wanted versions with those in force, and the etcd
// version with the newest version that has used the data directory
// [version-skew].
func (h *Host) skewProblem(role string) error {
	if !h.installed() {
		return nil
	}
	running := h.saved.Config.KubernetesVersion
	problems := []error{skewed(catalog.CheckChange(running, h.Config.KubernetesVersion),
		"keep "+running+", take a newer patch of it, or set up a new cluster after `kube-bootstrap turndown`")}
	started, err := etcd.Started(h.Files)
	if err != nil {
		return err
	}
	if started != "" && role == Master {
		problems = append(problems, skewed(catalog.CheckEtcdChange(started, h.versions.Etcd), "set ETCD_VERSION to "+started+" or newer"))
	}
	return errors.Join(problems...)
}

// joinSkewProblem compares the wanted version with the version of the API
// server that this host joins [version-skew].
func (h *Host) joinSkewProblem(server string) error {
	wanted, remedy := h.versions.Kubernetes, "set K8S_VERSION to "+server+", or leave it out"
	if h.Config.Join {
		return skewed(catalog.CheckControlPlane(wanted, server), remedy)
	}
	return skewed(catalog.CheckKubelet(wanted, server), remedy)
}

func skewed(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "version-skew", Text: err.Error(), Remedy: remedy}
}
