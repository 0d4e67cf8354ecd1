package plan

import (
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// skewProblem compares the wanted versions with the ones that this host runs
// [version-skew].
func (h *Host) skewProblem(role string) error {
	if !h.installed() {
		return nil
	}
	running := h.saved.Config.KubernetesVersion
	problems := []error{skewed(catalog.CheckChange(running, h.Config.KubernetesVersion),
		"keep "+running+", take a newer patch of it, or set up a new cluster after `kube-bootstrap turndown`")}
	var made image.Versions
	known, err := h.Files.Recall(versionsFile, &made)
	if err != nil {
		return err
	}
	if known && role == Master {
		problems = append(problems, skewed(catalog.CheckEtcdChange(made.Etcd, h.versions.Etcd), "set ETCD_VERSION to "+made.Etcd+" or newer"))
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
