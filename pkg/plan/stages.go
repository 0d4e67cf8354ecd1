package plan

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The steps below state what they are undone after, because the usual order, all later stages first,
// is slow. The slowest Undo restarts Docker.
// It begins once the kubelet has stopped, and runs beside the removal of the pods and,
// on a worker, of the node. The removal of the pods would delay the short steps before
// the restart. The files of the kubelet are removed after these. Their Undo also removes
// the empty tables of the firewall: Docker writes into tables while it starts, and
// flanneld and other CNI plugins have chains in them. The start of Docker would also
// start the boot unit, which mounts the directory of these files again and restores the
// route to Services, and then stay active. flanneld returns its lease through the
// agent's balancer, so the agent stops after flanneld:
//
//	overlay, boot unit ──┬──▶ docker0 ──┬──▶ flanneld ──┬──▶ agent, etcd ──────────┬──▶ bootstrap Docker, containerd
//	kubelet ──┬──────────┴──▶ pods ──┬──┤               └──▶ the kubelet's files ──┤
//	          │                      ├──┼──▶ route to Services ────────────────────┤
//	          │                      └──┼──▶ CNI plugins, filter of hosts ──────────┘
//	          └──▶ node ────────────────┘

// podNetwork is the stage in which a host gets its subnet from flannel and moves
// docker0 onto it, unless another CNI plugin provides the pod network. The steps
// beside run while flanneld starts.
func podNetwork(h *local.Host, role string, beside ...step.Step) step.Plan {
	flanneld := parts.Flanneld(h)
	return step.Plan{
		append(beside,
			parts.OnDocker0(h, flanneld.Start().UndoAfter(containerd.PodsID, kubelet.JoinID, maindocker.Docker0ID)),
			parts.OtherCNI(h).UndoAfter(containerd.PodsID, kubelet.JoinID)),
		{
			parts.OnDocker0(h, parts.Bridge(h).Move().UndoAfter(kubelet.StartID, maindocker.OverlayID, maindocker.BootUnitID)),
			parts.OnDocker0(h, parts.CNI(h)), parts.OnDocker0(h, flanneld.Overlay()),
		},
		{
			parts.OnDocker0(h, parts.Overlay(h).Open().UndoAfter(host.MadeDirsID)),
			parts.OnDocker0(h, parts.HostFilter(h, role).Step().UndoAfter(containerd.PodsID)),
			parts.KeepSysctls(h), bootUnit(h).UndoAfter(host.MadeDirsID),
		},
	}
}

// bootUnit is the step that restores the network at boot. systemd starts and stops
// nothing while it reads the unit, so the step does not run beside the restart of
// Docker.
func bootUnit(h *local.Host) step.Step {
	return maindocker.BootUnit(h.Files, h.Units, local.Binary, h.Timeout())
}

func beforeKubelet(h *local.Host, role string) step.Plan {
	configure := parts.Kubelet(h, role).Configure().UndoAfter(
		containerd.PodsID, kubelet.JoinID, maindocker.Docker0ID, flannel.StartID, containerd.LeaveCNIID)
	return step.Plan{
		{configure, parts.ServiceRoute(h).Step().UndoAfter(containerd.PodsID, maindocker.Docker0ID)},
		{parts.Pods(h).Claim().UndoAfter(kubelet.StartID, maindocker.OverlayID, maindocker.BootUnitID)},
	}
}

// startKubelet is the stage in which the kubelet starts and, on a worker, joins the cluster. The
// kubelet also stops after the Undo of others.
func startKubelet(h *local.Host, role string, others ...step.ID) step.Plan {
	return step.Plan{
		{parts.Kubelet(h, role).Start().UndoAfter(append(others, host.MadeDirsID)...)},
		{membership.Joined(h).UndoAfter(kubelet.StartID).If(role == local.Worker)},
	}
}

// loadBootstrap is the step that loads one image into the bootstrap Docker, once it runs,
// so that its container need not wait for the other images.
func loadBootstrap(h *local.Host, name string) step.Step {
	return parts.LoadBootstrap(h, name).Needing(bootstrapdocker.StartID)
}

func cniPlugins(h *local.Host) step.Step {
	return h.Source().InstallCNIPlugins().UndoAfter(containerd.PodsID)
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
		m.Labels = append(slices.Clone(m.Labels), node.ControlPlaneLabel+"=")
	}
	if role == local.Master && !h.Config.NoDedicated {
		m.Taints = append(slices.Clone(m.Taints), kubelet.ControlPlaneTaint+":"+string(corev1.TaintEffectNoSchedule))
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
		return parts.Addons(h).ApplyManifest("pod-network", "apply the pod network", parts.Addons(h).Flannel)
	}
	return parts.ApplyManifest(h, "pod-network", "apply the pod network", parts.NetworkManifest(h))
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

// earlyKubelet returns the steps that start the kubelet of a new host, on a control plane
// with the API server.
func earlyKubelet(h *local.Host, role string, needs ...step.ID) []step.Step {
	kubelet := parts.Kubelet(h, role)
	start := kubelet.Start()
	configure := early(h, start, kubelet.Configure()).Needing(needs...)
	pod := early(h, start, parts.StaticPods(h).Early()).Needing(needs...).If(role == local.Master)
	claim := early(h, start, parts.Pods(h).Claim()).Needing(configure.ID, pod.ID)
	return []step.Step{configure, pod, claim, early(h, start, start).Needing(claim.ID)}
}

// early returns s as a step before the start of the kubelet of a new host. It has no Undo, because
// a later step does the same.
func early(h *local.Host, start, s step.Step) step.Step {
	check := s.Check
	s.ID, s.Name, s.Undo = "early-"+s.ID, s.Name+" before docker0 moves", nil
	s.Check = func(ctx context.Context) (step.Diff, error) {
		if diff, err := start.Check(ctx); err != nil || len(diff) == 0 {
			return nil, err // the kubelet runs already
		}
		return check(ctx)
	}
	return ifNew(h, s)
}

// earlyAPIServer is the step that waits for the container of the API server. The move
// of docker0 ends the kubelet, which would otherwise create the container afterwards.
func earlyAPIServer(h *local.Host) step.Step {
	started := parts.StaticPod(h, "kube-apiserver").Started
	return ifNew(h, parts.Watched(step.Wait("early-apiserver", "start the API server before docker0 moves", started, parts.RunningKubelet().Explain)))
}

// ifNew returns s with a Check that finds nothing once docker0 can move, or
// where the host has a CNI configuration: a node would be Ready, and pods would
// get addresses of that network. It excludes the step where docker0 does not
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

// startAgent needs a client certificate for etcd. It is undone after flanneld, see podNetwork.
func startAgent(h *local.Host, role string) step.Step {
	b := parts.Balancer(h, role)
	return agent.Service{
		Files: h.Files, Units: h.Units, Program: local.Binary,
		Records: b.Records, Answers: b.Listens, Dirs: []string{balancer.StateDir},
	}.Start().UndoAfter(containerd.PodsID, kubelet.JoinID, flannel.StartID)
}
