package plan

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// podNetwork is the stage in which a host gets its subnet from flannel and moves
// docker0 onto it, unless another CNI plugin provides the pod network. The step
// beside runs while flanneld starts.
func podNetwork(h *local.Host, role string, beside step.Step) step.Plan {
	flanneld := parts.Flanneld(h)
	return step.Plan{
		{beside, parts.OnDocker0(h, flanneld.Start()), parts.OtherCNI(h)},
		{parts.OnDocker0(h, parts.Bridge(h).Move()), parts.OnDocker0(h, parts.CNI(h)), parts.OnDocker0(h, flanneld.Overlay())},
		{parts.OnDocker0(h, parts.Overlay(h).Open()), parts.OnDocker0(h, parts.HostFilter(h, role).Step()), parts.KeepSysctls(h), bootUnit(h)},
	}
}

// bootUnit is the step that restores the network at boot. systemd starts and stops
// nothing while it reads the unit, so the step does not run beside the restart of
// Docker.
func bootUnit(h *local.Host) step.Step {
	return maindocker.BootUnit(h.Files, h.Units, local.Binary, h.Timeout())
}

func beforeKubelet(h *local.Host, role string) step.Plan {
	return step.Plan{
		{parts.Kubelet(h, role).Configure(), parts.ServiceRoute(h).Step()},
		{parts.Pods(h).Claim()},
	}
}

// keepNetwork returns the steps that keep what pods and kube-proxy need on a host.
func keepNetwork(h *local.Host) []step.Step {
	return []step.Step{parts.OnDocker0(h, parts.KeepPods(h)), parts.Proxy(h).KeepServices(), parts.OnDocker0(h, containerd.KeepHostPorts(h.Files))}
}

// end is the last stage: the settings of the run are in force from here on.
func end(h *local.Host, role string) step.Plan {
	return step.Plan{{accept(h, role)}, parts.DropReplaced(h)}
}

// networkInstalled reports whether the run installs the pod network. Otherwise the
// user does so later, and nothing waits for it.
func networkInstalled(h *local.Host) bool { return h.Config.CNIPlugin != config.CNINone }

func marks(h *local.Host, role string) node.Marks {
	m := node.Marks{Labels: h.Config.NodeLabels, Taints: h.Config.NodeTaints, Own: role == local.Worker}
	if role == local.Master {
		m.Labels = append(slices.Clone(m.Labels), config.Label{Key: node.ControlPlaneLabel})
	}
	if role == local.Master && !h.Config.NoDedicated {
		m.Taints = append(slices.Clone(m.Taints), config.Taint{Taint: corev1.Taint{Key: kubelet.ControlPlaneTaint, Effect: corev1.TaintEffectNoSchedule}})
	}
	return m
}

// applyNetwork applies the pod network before any other pod, because no pod
// starts without it. On a joining control plane it does nothing.
func applyNetwork(h *local.Host) step.Step {
	switch {
	case h.OwnNetwork() || h.Config.CNIPlugin == config.CNINone || h.Config.Join:
		return step.Step{}
	case h.Config.CNIPlugin == config.CNIFlannel:
		return parts.Addons(h).ApplyManifest("apply the pod network", parts.Addons(h).Flannel)
	}
	return parts.ApplyManifest(h, "apply the pod network", parts.NetworkManifest(h))
}

// On a new host, the kubelet starts before docker0 moves, because the API server of
// a control plane and the certificate of a worker take longer than that:
//
//	etcd ──▶ flanneld ──▶ docker0 (Docker and the kubelet restart) ──▶ node Ready
//	kubelet ──▶ container of the API server ─────────────▶ API server ──┘
//
// The API server waits for etcd. Its container takes longer to start than etcd needs
// to elect itself, so neither waits for the other. containerd keeps the container
// while Docker restarts. The steps of the later stages complete and undo what these
// two do.

// earlyKubelet is the step that starts the kubelet of a new host, on a control plane
// with the API server.
func earlyKubelet(h *local.Host, role string) step.Step {
	kubelet := parts.Kubelet(h, role)
	start := kubelet.Start()
	return ifNew(h, step.Step{
		Name:  "start the kubelet before docker0 moves",
		Check: start.Check,
		Apply: func(ctx context.Context) error {
			before := []step.Step{kubelet.Configure()}
			if role == local.Master {
				before = append(before, parts.StaticPods(h).Early())
			}
			return (&step.Runner{}).Do(ctx, step.Plan{before, {parts.Pods(h).Claim()}, {start}})
		},
	})
}

// earlyAPIServer is the step that waits for the container of the API server. The move
// of docker0 ends the kubelet, which would otherwise create the container afterwards.
func earlyAPIServer(h *local.Host) step.Step {
	started := parts.StaticPod(h, "kube-apiserver").Started
	return ifNew(h, parts.Watched(step.Wait("start the API server before docker0 moves", started, parts.RunningKubelet().Explain)))
}

// ifNew returns s with a Check that finds nothing once docker0 can move, or
// where the host has a CNI configuration: a node would be Ready, and pods would
// get addresses of that network. It returns an empty step where docker0 does not
// move, and on a joining control plane, whose API server waits until its etcd is a
// member.
func ifNew(h *local.Host, s step.Step) step.Step {
	check := s.Check
	s.Check = func(ctx context.Context) (step.Diff, error) {
		if _, err := h.Lease(); err == nil || containerd.CNIProblems(h.Files, false) != nil {
			return nil, nil
		}
		return check(ctx)
	}
	return parts.OnDocker0(h, s.If(!h.Config.Join))
}

// reviveAPIServer is the step that restarts an API server that lost its etcd:
// it would wait for the kubelet's growing back-off.
func reviveAPIServer(h *local.Host) step.Step {
	pod := parts.StaticPod(h, "kube-apiserver")
	pod.Ready, pod.Needs = parts.API(h).Answers, parts.EtcdServer(h).RunningSince
	return pod.Revive()
}

// apiServerReady fails early if the kubelet or the API server crashes repeatedly.
func apiServerReady(h *local.Host) step.Step {
	return parts.Watched(parts.API(h).Ready().Watched(parts.StaticPod(h, "kube-apiserver").Watch))
}

// startAgent needs a client certificate for etcd.
func startAgent(h *local.Host, role string) step.Step {
	b := parts.Balancer(h, role)
	return agent.Service{
		Files: h.Files, Units: h.Units, Program: local.Binary,
		Records: b.Records, Answers: b.Listens, Dirs: []string{balancer.StateDir},
	}.Start()
}
