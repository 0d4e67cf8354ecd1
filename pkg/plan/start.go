package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// reviveAPIServer is the step that restarts an API server that lost its etcd:
// it would wait for the kubelet's growing back-off.
func reviveAPIServer(h *local.Host) step.Step {
	pod := parts.StaticPod(h, "kube-apiserver")
	pod.Ready, pod.Needs = parts.API(h).Answers, parts.EtcdServer(h).RunningSince
	return pod.Revive()
}

// reviveLate returns the steps that restart the controller manager and the
// scheduler if they crashed.
func reviveLate(h *local.Host) []step.Step {
	var all []step.Step
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		all = append(all, parts.StaticPod(h, name).Revive())
	}
	return all
}

// apiServerReady waits for the API server, and fails early if the kubelet or
// the API server's container crashes repeatedly.
func apiServerReady(h *local.Host) step.Step {
	return parts.Watched(h, parts.API(h).Ready().Watched(parts.StaticPod(h, "kube-apiserver").Watch))
}

// startAgent is the step that starts the agent. The agent needs a client
// certificate for etcd.
func startAgent(h *local.Host, role string) step.Step {
	b := parts.Balancer(h, role)
	return agent.Service{
		Files: h.Files, Units: h.Units, Program: local.Binary,
		Records: b.Records, Answers: b.Listens, Dirs: []string{balancer.StateDir},
	}.Start()
}
