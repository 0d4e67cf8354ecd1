package plan

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/firewall"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// nothingLeft returns a problem if something is left on the host after all
// other steps were undone. It only uses names, labels and marks, because a
// step whose record was lost may not find its own objects.
func nothingLeft(ctx context.Context, h *local.Host) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	looks := []func(context.Context) ([]string, error){
		func(context.Context) ([]string, error) { return filesLeft(h.Files), nil },
		containersLeft, h.CRISocket().Left, flannel.Left, rulesLeft,
		func(context.Context) ([]string, error) { return mountsLeft(h.Files.Path(kubelet.Dir)) },
	}
	found, errs := make([][]string, len(looks)), make([]error, len(looks))
	var running sync.WaitGroup
	for i, look := range looks {
		running.Go(func() { found[i], errs[i] = look(ctx) })
	}
	running.Wait()
	left := slices.Concat(found...)
	if err := errors.Join(errs...); err != nil || len(left) == 0 {
		return err
	}
	return &step.Problem{
		Name: "turndown-left", Firm: true, Text: "still on this host: " + strings.Join(left, ", "),
		Remedy: "remove it, and run `kube-bootstrap turndown` again",
	}
}

func filesLeft(files host.Files) []string {
	paths := append(slices.Clone(bootstrapdocker.ServiceFiles), containerd.ConfigFile)
	paths = append(paths, firewall.Files...)
	return slices.DeleteFunc(paths, func(path string) bool { return !files.Exists(path) })
}

// containersLeft lists the labelled containers of the main Docker, except the
// nodes of clusters of containers.
func containersLeft(ctx context.Context) (left []string, err error) {
	engine := local.MainDocker()
	if engine.Answers(ctx) != nil {
		return nil, nil // the step of the main Docker reports a stopped Docker
	}
	names, err := engine.HostContainers(ctx)
	for _, name := range names {
		left = append(left, "container "+name)
	}
	return left, err
}

func rulesLeft(ctx context.Context) ([]string, error) {
	left, err := maindocker.Left()
	chains, listErr := netfilter.ChainsEverywhere(ctx, "KUBE-", "FLANNEL-")
	for _, chain := range chains {
		left = append(left, "chain "+chain)
	}
	return left, errors.Join(err, listErr)
}

func mountsLeft(dir string) (left []string, err error) {
	points, err := host.MountsBelow(dir)
	for _, point := range points {
		left = append(left, "mount "+point)
	}
	return left, err
}
