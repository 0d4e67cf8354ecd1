package containerd

import (
	"context"
	"slices"
	"strings"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// proxyTable is the nftables table of kube-proxy in nftables mode.
	proxyTable = "ip kube-proxy"
	// proxyLimit is the time for a running kube-proxy to add its rules again by itself: it checks one chain every 30
	// s.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/proxy/iptables/proxier.go#L302-L308
	proxyLimit = time.Second
	// proxyStarts is the time for kube-proxy to add its rules after its start. It doubles up to slowProxyStarts with
	// each repair that fails, because a new kube-proxy on a slow host must not be replaced while it starts.
	proxyStarts     = 10 * time.Second
	slowProxyStarts = 2 * time.Minute
)

// proxyJumps are the jumps to kube-proxy's chains in iptables mode.
var proxyJumps = []netfilter.Jump{
	{Table: "nat", From: "PREROUTING", To: "KUBE-SERVICES"},
	{Table: "nat", From: "OUTPUT", To: "KUBE-SERVICES"},
	{Table: "nat", From: "POSTROUTING", To: "KUBE-POSTROUTING"},
	{Table: "filter", From: "FORWARD", To: "KUBE-FORWARD"},
}

// Proxy is the kube-proxy of this host, a pod.
type Proxy struct {
	Files  host.Files
	Socket Socket
}

// KeepServices is the step that restores the rules of kube-proxy, without which no Service is reachable. It removes
// kube-proxy's container, because the new one adds all rules. Its Check finds nothing if kube-proxy does not run, or
// may still be adding its rules.
func (p Proxy) KeepServices() step.Step { return p.keepServices(proxyStarts) }

// FollowServices is KeepServices after an event: it does not ignore a new kube-proxy.
func (p Proxy) FollowServices() step.Step { return p.keepServices(0) }

// keepServices ignores a kube-proxy that is younger than young.
func (p Proxy) keepServices(young time.Duration) step.Step {
	starts := proxyStarts
	return step.Step{
		ID: "keep-services", Name: "keep kube-proxy's rules",
		Check: func(ctx context.Context) (step.Diff, error) {
			missing, err := missingServices(ctx, p.Files)
			if err != nil || len(missing) == 0 {
				return nil, err
			}
			proxy, err := runningProxy(ctx, p.Socket)
			if err != nil || proxy == nil || age(proxy) < young {
				return nil, err
			}
			return missing, nil
		},
		Apply: func(ctx context.Context) error {
			err := p.repairServices(ctx, starts)
			starts = nextStarts(starts, err)
			return err
		},
	}
}

// nextStarts returns the time for kube-proxy to start after a repair that ended with err.
func nextStarts(starts time.Duration, err error) time.Duration {
	if err == nil {
		return proxyStarts
	}
	return min(2*starts, slowProxyStarts)
}

// repairServices restarts a kube-proxy that does not add its rules in time after its start.
func (p Proxy) repairServices(ctx context.Context, starts time.Duration) error {
	check := func(ctx context.Context) (step.Diff, error) { return missingServices(ctx, p.Files) }
	proxy, err := runningProxy(ctx, p.Socket)
	if err != nil || proxy == nil {
		return err
	}
	limit := max(proxyLimit, starts-age(proxy))
	missing, err := step.Persists(ctx, limit, check)
	if err != nil || !missing {
		return err
	}
	step.Report(ctx, "restarting kube-proxy", 0, 0)
	if err := p.remove(ctx, proxy); err != nil {
		return err
	}
	return step.UntilNone(ctx, check, nil)
}

// RestartAfter returns the step that replaces a kube-proxy that started before the time that end returns, if that is
// not zero. Its rules stay in the kernel meanwhile.
func (p Proxy) RestartAfter(end func() time.Time) step.Step {
	before := func(ctx context.Context) ([]*runtime.Container, error) {
		at := end()
		if at.IsZero() {
			return nil, nil
		}
		proxy, err := runningProxy(ctx, p.Socket)
		if err != nil || proxy == nil || !time.Unix(0, proxy.CreatedAt).Before(at) {
			return nil, err
		}
		return []*runtime.Container{proxy}, nil
	}
	difference := func(*runtime.Container) string {
		return "restart kube-proxy, which may wait up to a minute until it watches Services again"
	}
	return repairEach("restart-kube-proxy", "restart kube-proxy after an outage of the control plane", before,
		difference, p.remove)
}

func age(c *runtime.Container) time.Duration { return time.Since(time.Unix(0, c.CreatedAt)) }

// remove does not stop the container first: the kubelet replaces a missing container at once, but restarts an exited
// one only after a backoff.
func (p Proxy) remove(ctx context.Context, running *runtime.Container) error {
	return p.Socket.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		_, err := cri.RemoveContainer(ctx, &runtime.RemoveContainerRequest{ContainerId: running.Id})
		if err != nil && beingRemoved(err) {
			return nil
		}
		return err
	})
}

// missingServices searches all firewalls: kube-proxy's image may use another one than the host.
func missingServices(ctx context.Context, files host.Files) (diff step.Diff, err error) {
	if !files.Exists(podsFile) || !host.HasProgram("iptables") {
		return nil, nil
	}
	found, err := netfilter.AnyFirewall(func(chains *netfilter.Chains) (bool, error) {
		missing, err := missingRules(chains)
		if diff == nil {
			diff = missing
		}
		return err == nil && len(missing) == 0, err
	})
	if err != nil || found {
		return nil, err
	}
	tables, err := netfilter.NftTables(ctx)
	if err != nil || slices.Contains(tables, proxyTable) {
		return nil, err
	}
	return diff, nil
}

func missingRules(chains *netfilter.Chains) (step.Diff, error) {
	missing, err := chains.Missing(proxyJumps...)
	if err != nil {
		return nil, err
	}
	// The Service of the API server always exists.
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

// runningProxy returns the running container of kube-proxy, or nil.
func runningProxy(ctx context.Context, s Socket) (proxy *runtime.Container, err error) {
	if err := s.criServes(ctx); err != nil {
		if step.IsUnanswered(err) {
			return nil, err
		}
		return nil, nil // no pod runs without CRI
	}
	err = s.withCRI(ctx, func(cri runtime.RuntimeServiceClient) error {
		answer, err := cri.ListContainers(ctx, &runtime.ListContainersRequest{Filter: &runtime.ContainerFilter{
			State: &runtime.ContainerStateValue{State: runtime.ContainerState_CONTAINER_RUNNING},
			LabelSelector: map[string]string{"io.kubernetes.container.name": "kube-proxy",
				"io.kubernetes.pod.namespace": "kube-system"},
		}})
		if err == nil && len(answer.Containers) > 0 {
			proxy = answer.Containers[0]
		}
		return err
	})
	return proxy, err
}
