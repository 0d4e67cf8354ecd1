package plan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The roles of a host.
const (
	Master = "master"
	Worker = "worker"
)

// Preflight returns the checks that run on a resolved host before anything is
// changed. They are one row, so that all problems are reported at once.
func (h *Host) Preflight(role string) step.Plan {
	if role == Loaded {
		return h.preflightLoad()
	}
	looks := []step.Step{
		h.look("role", "look for another cluster on this host", func(context.Context) error { return h.roleProblem(role) }),
		h.look("cluster-identity", "look for the keys of the cluster", func(context.Context) error { return h.identityProblem(role) }),
		h.look("version-skew", "compare the versions with the running versions", func(context.Context) error { return h.skewProblem(role) }),
		h.look("settings", "compare the settings with those in force", h.settingsProblem),
		h.look("ip-address", "check the address of this host", h.addressProblem),
		h.look("network-overlap", "compare the networks with the host's routes", h.overlapProblem),
		h.look("disk-space", "check free space", h.spaceProblem),
		h.look("clock", "check the clock", func(context.Context) error { return clockProblem(time.Now()) }),
		h.look("arch", "check the architecture", h.archProblem),
		h.look("docker", "check Docker", func(ctx context.Context) error { return h.bridge().Problems(ctx) }),
		h.look("kernel", "check the kernel", h.kernelProblem),
		h.look("cni-config", "check for another CNI config", h.podProblems),
		h.look("cni-plugin", "check the network of the pods", func(context.Context) error { return h.networkProblem(role) }),
		h.look("addon", "check the addons", func(context.Context) error { return h.addonProblems(role) }),
		h.look("bundle", "check the bundle", func(ctx context.Context) error { return h.bundleProblem(ctx, role) }),
		h.look("ports", "check ports", func(context.Context) error { return h.portProblem(role) }),
		h.look("node-size", "check the resources of the node", h.kubelet(role).Own.Problems),
		h.look("node-taint", "compare the taints of the node", func(ctx context.Context) error { return h.taintProblem(ctx, role) }),
		h.look("swap", "check swap", swapProblem),
		h.look("inotify", "check what can be watched", h.inotifyProblem),
	}
	return step.Plan{append(h.unanswered(), looks...)}.Within(h.timeout())
}

// look returns a step that is only a check. It omits the problems that the
// user ignores, by their name or by the name of the check.
func (h *Host) look(name, title string, find func(context.Context) error) step.Step {
	return step.Step{Name: title, Check: func(ctx context.Context) (step.Diff, error) {
		err := h.withoutIgnored(find(ctx))
		if slices.Contains(h.Config.IgnorePreflight, name) {
			err = joinProblems(slices.DeleteFunc(step.Problems(err), func(p *step.Problem) bool { return !p.Firm }))
		}
		return nil, err
	}}
}

func (h *Host) withoutIgnored(err error) error {
	problems := step.Problems(err)
	if err == nil || len(problems) == 0 {
		return err
	}
	left := slices.DeleteFunc(problems, func(p *step.Problem) bool {
		return !p.Firm && slices.Contains(h.Config.IgnorePreflight, p.Name)
	})
	return joinProblems(left)
}

// installed reports whether this host has a role, completely or partly. Its
// ports and networks are then in use by itself.
func (h *Host) installed() bool { return h.saved.Installed() }

func (h *Host) roleProblem(role string) error {
	if h.installed() && h.saved.Role != role {
		return &step.Problem{Name: "role", Text: fmt.Sprintf("this host is already a %s", h.saved.Role),
			Remedy: "run `kube-bootstrap turndown` first to make it a " + role}
	}
	if err := h.firstProblem(role); err != nil {
		return err
	}
	if !h.installed() && h.Files.Exists("/etc/kubernetes/manifests") && !h.emptyDir("/etc/kubernetes/manifests") {
		return &step.Problem{Name: "role", Text: "/etc/kubernetes/manifests contains static pods of another cluster",
			Remedy: "remove that cluster first (`kubeadm reset`, if kubeadm made it)"}
	}
	return nil
}

// identityProblem returns a problem if the keys of the cluster were lost,
// because a control plane must not create new ones.
func (h *Host) identityProblem(role string) error {
	if role != Master {
		return nil
	}
	return h.controlPlane().IdentityProblem()
}

func (h *Host) emptyDir(dir string) bool {
	entries, err := os.ReadDir(h.Files.Path(dir))
	return err == nil && len(entries) == 0
}

func (h *Host) addressProblem(context.Context) error {
	links, err := host.Links()
	if err != nil {
		return err
	}
	if name := h.Config.NetInterface; name != "" && !slices.ContainsFunc(links, func(l host.Link) bool { return l.Name == name }) {
		return &step.Problem{Name: "net-interface", Text: fmt.Sprintf("netInterface: %s: this interface does not exist", name),
			Remedy: "use one of: " + names(links)}
	}
	if h.detectErr != nil {
		return &step.Problem{Name: "ip-address", Text: "cannot detect the address of this host: " + h.detectErr.Error(),
			Remedy: "give it with --ip-address or IP_ADDRESS"}
	}
	for _, l := range links {
		for _, a := range l.Addrs {
			if a.Addr().String() == h.Config.IPAddress {
				return nil
			}
		}
	}
	remedy := "give an address of this host with --ip-address or IP_ADDRESS"
	if h.keepsAddress() {
		remedy = "assign this address to the host again, because the address of a control plane cannot change"
	}
	return &step.Problem{Name: "ip-address", Text: fmt.Sprintf("ipAddress: %s: no interface has this address", h.Config.IPAddress), Remedy: remedy}
}

func names(links []host.Link) string {
	var all []string
	for _, l := range links {
		all = append(all, l.Name)
	}
	return strings.Join(all, ", ")
}

// overlapProblem compares the pod and service networks with the host's
// routes. It ignores docker0, which moves into the pod network, and flannel's
// links.
func (h *Host) overlapProblem(context.Context) error {
	routes, err := host.Routes()
	if err != nil {
		return err
	}
	var problems []*step.Problem
	for field, cidr := range map[string]string{"flannelNetwork": h.Config.FlannelNetwork, "serviceNetwork": h.Config.ServiceNetwork} {
		network, err := netip.ParsePrefix(cidr)
		if err != nil {
			continue // reported by the validation of the configuration
		}
		for _, r := range routes {
			if h.strange(r) && r.Dst.Overlaps(network) {
				problems = append(problems, &step.Problem{Name: "network-overlap",
					Text:   fmt.Sprintf("%s: %s overlaps the route to %s on %s", field, cidr, r.Dst, r.Link),
					Remedy: "choose another network"})
			}
		}
	}
	return joinProblems(problems)
}

func (h *Host) strange(r host.Route) bool {
	ours := r.Link == "docker0" || strings.HasPrefix(r.Link, "flannel") || h.installed()
	return r.Dst.Bits() > 0 && !ours
}

// swapProblem returns a problem if swap is on with cgroup v1. Kubelets of
// 1.34 and later disable swap for pods by cgroup v2; with v1 pods could
// exceed their memory limits.
func swapProblem(context.Context) error {
	if !host.SwapOn() || host.CgroupV2() {
		return nil
	}
	return &step.Problem{Name: "swap", Text: "swap is on, and the kubelet cannot disable it for pods with cgroup v1",
		Remedy: "disable it (`swapoff -a`, and remove its line in /etc/fstab)"}
}

func (h *Host) portProblem(role string) error {
	if h.installed() {
		return nil
	}
	ports := []int{10250, h.Config.BalancerPort, h.Config.BalancerPort + 1}
	if role == Master {
		ports = append(ports, h.Config.APIServerPort, 2379, 2380, 10257, 10259)
	}
	var problems []*step.Problem
	for _, port := range ports {
		if err := host.PortFree(port); err != nil {
			problems = append(problems, &step.Problem{Name: fmt.Sprintf("port-%d", port),
				Text:   fmt.Sprintf("port %d is in use: %v", port, err),
				Remedy: fmt.Sprintf("stop the process that listens there (`ss -ltnp 'sport = :%d'`)", port)})
		}
	}
	return joinProblems(problems)
}

func joinProblems(problems []*step.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
