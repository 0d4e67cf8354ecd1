// Package preflight finds the problems of a run before anything is changed.
package preflight

import (
	"context"
	"errors"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/maindocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// check finds the problems of one kind. It changes nothing.
type check struct {
	name  string // for --ignore-preflight
	title string
	find  func(context.Context, request) error
}

type request struct {
	*local.Host
	role  string
	parts parts.Parts
}

var checks = []check{
	{"role", "look for another cluster on this host", roleProblem},
	{"cluster-identity", "look for the keys of the cluster", identityProblem},
	{"version-skew", "compare the versions with the running versions", skewProblem},
	{"etcd-version", "check the version of etcd", etcdProblem},
	{"settings", "compare the settings with those in force", settingsProblem},
	{"ip-address", "check the name and the address of this host", placeProblem},
	{"network-overlap", "compare the networks with the host's routes", overlapProblem},
	{"disk-space", "check free space", spaceProblem},
	{"clock", "check the clock", clockProblem},
	{"arch", "check the architecture", archProblem},
	{"docker", "check Docker", dockerProblem},
	{"kernel", "check the kernel and the programs of the firewall", kernelProblem},
	{"firewalld-strict", "check firewalld", firewalldProblem},
	{"cni-config", "check for another CNI config", podProblems},
	{"cni-plugin", "check the network of the pods", networkProblem},
	{"addon", "check the addons", addonProblems},
	{"load-balancer-addresses", "compare the addresses for load balancers with those of hosts", balancedProblem},
	{"bundle", "check the bundle", bundleProblem},
	{"ports", "check ports", portProblem},
	{"node-size", "check the resources of the node", sizeProblem},
	{"node-taint", "compare the taints of the node", taintProblem},
	{"swap", "check swap", swapProblem},
	{"inotify", "check what can be watched", inotifyProblem},
}

// Plan returns the checks that run on a resolved host before anything is
// changed. They are one stage, so that all problems are reported at once.
func Plan(h *local.Host, role string) step.Plan {
	if role == local.Loaded {
		return loadPlan(h)
	}
	return step.Plan{append(unanswered(h), steps(request{h, role, parts.New(h, role)}, checks)...)}.Within(h.Timeout())
}

func steps(r request, checks []check) []step.Step {
	var all []step.Step
	for _, c := range checks {
		all = append(all, c.step(r))
	}
	return all
}

func (c check) step(r request) step.Step {
	return step.Step{ID: step.IDOf(c.title), Name: c.title, Check: func(ctx context.Context) (step.Diff, error) {
		return nil, withoutIgnored(r, c.name, c.find(ctx, r))
	}}
}

func unanswered(h *local.Host) []step.Step {
	var all []check
	for _, a := range h.Answers {
		all = append(all, check{a.Name, a.Title, func(context.Context, request) error { return a.Err }})
	}
	return steps(request{Host: h}, all)
}

// withoutIgnored omits the problems that the user ignores, by their name or by the
// name of the check that has found them.
func withoutIgnored(r request, check string, err error) error {
	ignored := func(name string) bool { return slices.Contains(r.Config.IgnorePreflight, name) }
	problems := step.Problems(err)
	if len(problems) == 0 && !ignored(check) {
		return err
	}
	var left []error
	for _, p := range problems {
		if p.Firm || !ignored(check) && !ignored(p.Name) {
			left = append(left, p)
		}
	}
	return errors.Join(left...)
}

func skewProblem(_ context.Context, h request) error { return local.SkewProblem(h.Host, h.role) }

// etcdProblem refuses an etcd that does not enforce the rights of its users: an
// older bundle or registry may have one, or this host may run it without a newer one.
func etcdProblem(_ context.Context, h request) error {
	if h.role != local.ControlPlane {
		return nil
	}
	err := catalog.CheckEtcdRights(h.Versions.Etcd)
	if err == nil {
		return nil
	}
	return &step.Problem{Name: "etcd-version", Firm: true, Text: "etcd " + err.Error(),
		Remedy: "create a new bundle with `kube-bootstrap offline build`, " +
			"and run `kube-bootstrap master` with it on every control plane of the cluster"}
}

// dockerProblem finds the problems of Docker, and on a new host those that its restart would cause.
func dockerProblem(ctx context.Context, h request) error {
	docker := h.parts.Docker
	errs := []error{docker.Problems(ctx, kubelet.Dir)}
	moves := h.role != local.Loaded && !h.Saved.Installed() && h.ManagesNetwork()
	if engine := docker.Engine(); moves && engine.Answers(ctx) == nil {
		own := h.parts.Network.Reserved()
		errs = append(errs,
			maindocker.RestartProblem(ctx, engine), own.NetworkProblems(ctx, engine),
			own.PoolProblems(ctx, h.Files, engine))
	}
	return errors.Join(errs...)
}

// DockerProblems returns what goes wrong in the Docker of an installed host by itself: it hangs, or
// somebody has created a network that overlaps those of the cluster [docker-hangs, network-overlap].
func DockerProblems(ctx context.Context, docker maindocker.Daemon, own maindocker.ClusterNetworks) error {
	if err := docker.Hanging(ctx); err != nil || docker.Engine().Answers(ctx) != nil {
		return err
	}
	return own.NetworkProblems(ctx, docker.Engine())
}

// WatchDocker is the step that names DockerProblems. It has no Apply: a restart ends what works
// in spite of them.
func WatchDocker(docker maindocker.Daemon, own maindocker.ClusterNetworks) step.Step {
	return step.Step{
		ID: "watch-docker", Name: "look at Docker", Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) { return nil, DockerProblems(ctx, docker, own) },
	}
}

func sizeProblem(_ context.Context, h request) error {
	return h.parts.Node.Kubelet.Config.Node.Problems()
}
