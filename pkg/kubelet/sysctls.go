package kubelet

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const sysctlFile = host.StateDir + "/sysctls.json"

// sysctls are the kernel settings that the kubelet, kube-proxy, flanneld, CNI
// plugins and Docker change.
var sysctls = []string{
	"kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes",
	"vm.overcommit_memory", "vm.panic_on_oom",
	"net.ipv4.ip_forward", "net.ipv4.conf.all.route_localnet", "net.ipv4.conf.all.rp_filter", "net.ipv4.conf.default.rp_filter",
	"net.ipv6.conf.all.forwarding", "net.ipv6.conf.default.forwarding",
	"net.bridge.bridge-nf-call-iptables", "net.bridge.bridge-nf-call-ip6tables",
	"net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_tcp_be_liberal",
	"net.netfilter.nf_conntrack_tcp_timeout_established", "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
	"net.netfilter.nf_conntrack_udp_timeout", "net.netfilter.nf_conntrack_udp_timeout_stream",
}

// RememberSysctls writes down kernel settings before anything changes them,
// for Undo to put back. It belongs before all else.
func (k Kubelet) RememberSysctls() step.Step {
	return step.Step{
		Name: "remember kernel settings",
		Check: func(context.Context) (step.Diff, error) {
			if k.Files.Exists(sysctlFile) {
				return nil, nil
			}
			return step.Diff{"write " + sysctlFile}, nil
		},
		Apply: func(context.Context) error { return k.rememberSysctls() },
		Undo:  func(context.Context) error { return k.restoreSysctls() },
	}
}

func (k Kubelet) rememberSysctls() error {
	if k.Files.Exists(sysctlFile) {
		return nil
	}
	values := map[string]string{}
	for _, name := range sysctls {
		if value, ok := k.Files.Sysctl(name); ok {
			values[name] = value
		}
	}
	return k.Files.Remember(sysctlFile, values)
}

func (k Kubelet) restoreSysctls() error {
	var values map[string]string
	if known, err := k.Files.Recall(sysctlFile, &values); err != nil || !known {
		return err
	}
	var errs []error
	for _, name := range sysctls {
		was, known := values[name]
		if now, ok := k.Files.Sysctl(name); known && ok && now != was {
			errs = append(errs, k.Files.SetSysctl(name, was))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return k.Files.Remove(sysctlFile)
}
