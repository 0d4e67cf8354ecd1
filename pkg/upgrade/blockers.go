package upgrade

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// OldKubelets returns the problem that kubelets are too old for the version [kubelet-skew].
func OldKubelets(nodes []Node, to string) error {
	return host.Each(nodes, func(n Node) error {
		err := catalog.CheckKubelet(n.Kubelet, to)
		if err == nil {
			return nil
		}
		return &step.Problem{Name: "kubelet-skew", Firm: true, Text: fmt.Sprintf("node %s: %v", n.Name, err),
			Remedy: "complete the earlier upgrade of this node, or remove it"}
	})
}

// Etcd is a member of etcd.
type Etcd struct {
	Name, Version string
	Healthy       bool
}

// OldEtcd returns the problems of members that cannot change to the etcd of the version
// [etcd-unhealthy, etcd-patch].
func OldEtcd(members []Etcd, to string) error {
	return host.Each(members, func(m Etcd) error {
		if !m.Healthy {
			return &step.Problem{Name: "etcd-unhealthy", Firm: true, Text: "member " + m.Name + " of etcd is not healthy",
				Remedy: "repair it with `kube-bootstrap master` on its host, or remove the host with `kube-bootstrap forget`"}
		}
		if err := catalog.CheckEtcdUpgrade(m.Version, to); err != nil {
			return &step.Problem{Name: "etcd-patch", Firm: true, Text: fmt.Sprintf("member %s: %v", m.Name, err),
				Remedy: "install the newest patch of the present minor version with `kube-bootstrap master` " +
					"on its host first"}
		}
		return nil
	})
}

// RemovedAPIs returns the problem that clients use APIs which the version no longer has [removed-api]. The API
// servers count such requests since they started.
func (s Servers) RemovedAPIs(ctx context.Context, to string) error {
	var used []string
	for _, one := range s {
		apis, err := one.removedAPIs(ctx, to)
		if err != nil {
			return err
		}
		used = append(used, apis...)
	}
	if len(used) == 0 {
		return nil
	}
	slices.Sort(used)
	return &step.Problem{
		Name: "removed-api", Firm: true,
		Text:   fmt.Sprintf("clients use APIs that Kubernetes %s removes: %s", to, strings.Join(slices.Compact(used), ", ")),
		Remedy: "change the clients to another version of the API; the audit log of the API server names them",
	}
}

func (s Server) removedAPIs(ctx context.Context, to string) ([]string, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	data, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the metrics of the API server of %s: %w", s.Address, err)
	}
	return removedIn(data, to)
}

// removedIn returns the requested APIs of a page of metrics that a version does not have.
func removedIn(page []byte, to string) (apis []string, err error) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	target := version.MustParseGeneric(Minor(to))
	for _, m := range families["apiserver_requested_deprecated_apis"].GetMetric() {
		labels := labelsOf(m)
		removed, err := version.ParseGeneric(labels["removed_release"])
		if err != nil || target.LessThan(removed) {
			continue // the release of the removal is not known yet
		}
		group := strings.TrimPrefix(labels["group"]+"/"+labels["version"], "/")
		apis = append(apis, group+" "+labels["resource"])
	}
	return apis, nil
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels
}
