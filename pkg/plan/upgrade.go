package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/upgrade"
)

// Of returns the plan of a host with a role.
func Of(h *local.Host, role string) step.Plan {
	if role == local.ControlPlane {
		return ControlPlane(h)
	}
	return Worker(h)
}

// UpgradeLock returns the lock of all upgrades of the cluster, which has no holder yet.
func UpgradeLock(h *local.Host) *upgrade.Lock {
	kubeconfig := controlplane.AdminConf
	if h.Saved.Role == local.Worker {
		kubeconfig = kubelet.Kubeconfig
	}
	return &upgrade.Lock{API: parts.InForce(h).Cluster.As(kubeconfig)}
}

// LoadNext returns the plan that loads the images of another version into the stores of an installed host.
// It is the first part of an upgrade: nothing stops before all images are there.
func LoadNext(next *local.Host, role string) step.Plan {
	p := parts.New(next.WithImages(next.ImagesOf(role)), role)
	main, pods := p.Images.Load()
	joined := role == local.Worker || next.Config.Join
	return append(append(step.Plan{{preflight.Room(next.Files)}}, next.Supply.Plan...),
		[]step.Step{p.Images.Fetch().If(joined)},
		[]step.Step{
			p.Images.LoadBootstrap("etcd").If(role == local.ControlPlane), p.Images.LoadBootstrap("flannel"), main, pods,
		},
	).Within(next.Timeout())
}

// beginUpgrade records an unfinished upgrade before the first change, so that a killed run can be continued
// or taken back.
func beginUpgrade(h *local.Host) step.Step {
	return h.Files.Step("begin-upgrade", "record the upgrade", func() ([]host.File, error) {
		file, err := upgrade.File.File(h.Upgrade)
		return []host.File{file}, err
	}).If(h.Upgrade.Begun())
}

// upgradeEnds reports whether the record of an upgrade is to be removed at the end of a run.
func upgradeEnds(h *local.Host) bool { return !h.Upgrade.Begun() && h.Files.Exists(upgrade.File.Path) }

func endUpgrade(h *local.Host) error {
	if !upgradeEnds(h) {
		return nil
	}
	return h.Files.Remove(upgrade.File.Path)
}
