package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// Nodes returns the nodes of the cluster, for a control plane.
func Nodes(ctx context.Context, h *local.Host) ([]corev1.Node, error) {
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	api := parts.InForce(h).Cluster.As(controlplane.AdminConf)
	list, err := kube.Ask(api, func(client kubernetes.Interface) (*corev1.NodeList, error) {
		return client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return list.Items, nil
}

// UpgradeChecks returns the checks of a control plane whether the cluster can change to the version of next.
func UpgradeChecks(h, next *local.Host) step.Plan {
	own := parts.InForce(h).Etcd.Client
	return step.Plan{{
		look("compare the kubelets with the new version", func(ctx context.Context) error {
			nodes, err := Nodes(ctx, h)
			return errors.Join(err, upgrade.OldKubelets(kubelets(nodes), next.Versions.Kubernetes))
		}),
		look("look for requests of APIs that the new version removes", func(ctx context.Context) error {
			return parts.APIServers(h).RemovedAPIs(h.Limited(ctx), next.Versions.Kubernetes)
		}),
		look("look for objects of APIs that the new version removes", func(ctx context.Context) error {
			api := parts.InForce(h).Cluster.As(controlplane.AdminConf)
			return upgrade.StoredAPIs(h.Limited(ctx), api, h.Versions.Kubernetes, next.Versions.Kubernetes)
		}),
		look("compare the settings with those of the new version", func(context.Context) error {
			return settingsProblem(next)
		}),
		look("check the members of etcd", func(ctx context.Context) error {
			members, err := own.Status(h.Limited(ctx))
			return errors.Join(err, upgrade.OldEtcd(etcdMembers(members), next.Versions.Etcd))
		}),
		look("check the certificates", func(context.Context) error {
			return pki.ExpiryProblem(renewal.Certificates(h.Files, h.Saved.Role))
		}),
	}}.Within(h.Timeout())
}

// DrainChecks returns the checks of a control plane whether each worker can be drained.
func DrainChecks(h *local.Host, d node.Drain) step.Plan {
	api := parts.InForce(h).Cluster
	return step.Plan{{
		look("look for pods that cannot leave a worker", func(ctx context.Context) error {
			nodes, err := Nodes(ctx, h)
			if err != nil {
				return err
			}
			return host.Each(workers(nodes), func(name string) error {
				return api.Node(name).Undrainable(h.Limited(ctx), d)
			})
		}),
		look("look for admission webhooks that nothing serves", func(ctx context.Context) error {
			return node.DeadWebhooks(h.Limited(ctx), api.As(controlplane.AdminConf))
		}),
	}}.Within(h.Timeout())
}

// look is a step that only finds problems.
func look(title string, find func(context.Context) error) step.Step {
	return step.Step{ID: step.IDOf(title), Name: title, Check: func(ctx context.Context) (step.Diff, error) {
		return nil, find(ctx)
	}}
}

// settingsProblem returns the problem of settings that the new version does not accept: flags and feature
// gates that it does not have.
func settingsProblem(next *local.Host) error {
	var texts []string
	for _, err := range next.Config.Validate(next.Saved.Role) {
		texts = append(texts, err.Error())
	}
	if len(texts) == 0 {
		return nil
	}
	return &step.Problem{Name: "upgrade-settings", Firm: true,
		Text:   "the new version does not accept these settings: " + strings.Join(texts, "; "),
		Remedy: "change them with `kube-bootstrap master` or `kube-bootstrap worker` first"}
}

func kubelets(nodes []corev1.Node) (all []upgrade.Node) {
	for _, n := range nodes {
		all = append(all, upgrade.NodeOf(n))
	}
	return all
}

func etcdMembers(members []etcd.MemberStatus) (all []upgrade.Etcd) {
	for _, m := range members {
		all = append(all, upgrade.Etcd{Name: m.Name, Version: m.Version, Healthy: m.Healthy})
	}
	return all
}

func workers(nodes []corev1.Node) (names []string) {
	for _, n := range nodes {
		if upgrade.NodeOf(n).Worker() {
			names = append(names, n.Name)
		}
	}
	return names
}
