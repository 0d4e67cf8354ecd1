package containerd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// proxyTable is kube-proxy's in its mode nftables.
	proxyTable = "ip kube-proxy"
	// proxyPatience is how long kube-proxy may take to enter its rules, after its
	// start or by itself. It looks every 30 s, and for one chain only.
	proxyPatience = time.Second
	proxyStarts   = 10 * time.Second
)

// proxyJumps lead to the chains of kube-proxy in its mode iptables.
var proxyJumps = []host.Jump{
	{Table: "nat", From: "PREROUTING", To: "KUBE-SERVICES"},
	{Table: "nat", From: "OUTPUT", To: "KUBE-SERVICES"},
	{Table: "nat", From: "POSTROUTING", To: "KUBE-POSTROUTING"},
	{Table: "filter", From: "FORWARD", To: "KUBE-FORWARD"},
}

// KeepServices makes the rules of kube-proxy come back that somebody has
// removed: without them no Service is reached from this host. The container of
// kube-proxy is removed, and the kubelet creates a new one, which enters all
// rules. Nothing is missing while none runs, or while a new one may still be
// entering its rules.
func (r Runtime) KeepServices() step.Step { return r.keepServices(proxyStarts) }

// FollowServices is KeepServices after rules were removed: it waits for a new
// kube-proxy too.
func (r Runtime) FollowServices() step.Step { return r.keepServices(0) }

// keepServices leaves a kube-proxy alone that is younger than an age.
func (r Runtime) keepServices(young time.Duration) step.Step {
	return step.Step{
		Name: "keep kube-proxy's rules",
		Check: func(ctx context.Context) (step.Diff, error) {
			missing, err := r.missingServices(ctx)
			if err != nil || len(missing) == 0 {
				return nil, err
			}
			proxy, err := r.proxy(ctx)
			if err != nil || proxy == nil || age(proxy) < young {
				return nil, err
			}
			return missing, nil
		},
		Apply: r.repairServices,
	}
}

func (r Runtime) repairServices(ctx context.Context) error {
	whole := func(ctx context.Context) error {
		missing, err := r.missingServices(ctx)
		if err == nil && len(missing) > 0 {
			err = errors.New(missing.String())
		}
		return err
	}
	proxy, err := r.proxy(ctx)
	if err != nil || proxy == nil {
		return err
	}
	patience := max(proxyPatience, proxyStarts-age(proxy))
	if step.Until(step.WithLimit(ctx, patience), whole, nil) == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	step.Report(ctx, "restarting kube-proxy", 0, 0)
	if err := r.removeContainer(ctx, proxy.Id); err != nil {
		return err
	}
	return step.Until(ctx, whole, nil)
}

func age(c *runtime.Container) time.Duration { return time.Since(time.Unix(0, c.CreatedAt)) }

// removeContainer removes a running container, which CRI forces. The kubelet
// replaces a container that is gone at once. One that it sees exited it restarts
// after a backoff, which doubles with each restart: hence no stop before.
func (r Runtime) removeContainer(ctx context.Context, id string) error {
	return r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		_, err := cri.RemoveContainer(ctx, &runtime.RemoveContainerRequest{ContainerId: id})
		return err
	})
}

// missingServices looks into all firewalls of the kernel, as kube-proxy's image
// has programs of its own.
func (r Runtime) missingServices(ctx context.Context) (diff step.Diff, err error) {
	if !r.Files.Exists(podsFile) || !host.HasProgram("iptables") {
		return nil, nil
	}
	found, err := host.AnyFirewall(func(chains *host.Chains) (bool, error) {
		missing, err := missingRules(chains)
		if diff == nil {
			diff = missing
		}
		return err == nil && len(missing) == 0, err
	})
	if err != nil || found {
		return nil, err
	}
	tables, err := host.NftTables(ctx)
	if err != nil || slices.Contains(tables, proxyTable) {
		return nil, err
	}
	return diff, nil
}

func missingRules(chains *host.Chains) (step.Diff, error) {
	jumps, err := chains.Missing(proxyJumps...)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, j := range jumps {
		missing = append(missing, j.String())
	}
	// The Service of the API server is always there.
	if rules, err := chains.Rules("nat", "KUBE-SERVICES"); err != nil {
		return nil, err
	} else if len(rules) == 0 {
		missing = append(missing, "the rules of Services")
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return step.Diff{"restart kube-proxy, whose rules lack " + strings.Join(missing, ", ")}, nil
}

// proxy returns the container of kube-proxy that runs, or nil.
func (r Runtime) proxy(ctx context.Context) (proxy *runtime.Container, err error) {
	if err := r.criServes(ctx); err != nil {
		if step.IsUnanswered(err) {
			return nil, err
		}
		return nil, nil // no pod runs without CRI
	}
	err = r.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
			State:         &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_RUNNING},
			LabelSelector: map[string]string{"io.kubernetes.container.name": "kube-proxy", "io.kubernetes.pod.namespace": "kube-system"},
		}})
		if err == nil && len(answer.Containers) > 0 {
			proxy = answer.Containers[0]
		}
		return err
	})
	return proxy, err
}
