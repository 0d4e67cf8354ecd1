package kubelet

import (
	"context"
	_ "embed" // the names of kernel settings
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// sysctlRecord contains the former kernel settings by name; none if it was lost.
var sysctlRecord = host.Record[map[string]string]{Path: host.StateDir + "/sysctls.json", Valid: validSysctls}

func validSysctls(values map[string]string) error {
	for name, value := range values {
		if _, err := strconv.Atoi(value); err != nil || !slices.Contains(sysctls, name) {
			return fmt.Errorf("%q = %q is not a kernel setting that was kept", name, value)
		}
	}
	return nil
}

//go:embed sysctls.txt
var sysctlNames string

// sysctls are what the kubelet, kube-proxy, flanneld, CNI plugins and Docker change.
var sysctls = strings.Fields(sysctlNames)

// RememberSysctls is the step that saves kernel settings, which Undo restores. It
// must run before all steps that change a kernel setting.
func RememberSysctls(files host.Files) step.Step {
	return step.Step{
		ID: "remember-sysctls", Name: "remember kernel settings",
		Check: func(context.Context) (step.Diff, error) { return sysctlRecord.Diff(files) },
		Apply: func(context.Context) error {
			return sysctlRecord.Ensure(files, func(lost error) (map[string]string, error) {
				values := map[string]string{}
				if host.IsDamaged(lost) || hasBeen(files) {
					return values, nil // the kernel settings may have changed already
				}
				for _, name := range sysctls {
					if value, ok := kernel.Sysctl(files, name); ok {
						values[name] = value
					}
				}
				return values, nil
			})
		},
		Undo: func(ctx context.Context) error { return restoreSysctls(ctx, files) },
	}
}

// hasBeen reports whether kube-bootstrap has set up a kubelet here, at least partly.
func hasBeen(files host.Files) bool { return files.Exists(Kubeconfig) || files.Exists(BootstrapConfig) }

func leaveSysctls(ctx context.Context) {
	step.Leave(ctx, "kernel settings: the values from before are not known, as "+sysctlRecord.Path+
		" was lost; they stay until the next boot")
}

func restoreSysctls(ctx context.Context, files host.Files) error {
	values, err := sysctlRecord.Read(files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case host.IsDamaged(err) || err == nil && len(values) == 0:
		leaveSysctls(ctx)
	case err != nil:
		return err
	}
	if err := host.Each(sysctls, func(name string) error {
		was, known := values[name]
		if now, ok := kernel.Sysctl(files, name); known && ok && now != was {
			return kernel.SetSysctl(files, name, was)
		}
		return nil
	}); err != nil {
		return err
	}
	return files.Remove(sysctlRecord.Path)
}

// KeepSysctls sets the kernel settings that packets between pods, containers and hosts
// depend on. Docker, flanneld and kube-proxy set them when they start, and do not notice
// a change. Packets are forwarded between the links; a missing link is skipped.
func KeepSysctls(files host.Files, links ...string) step.Step {
	names := []string{"net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"}
	for _, link := range links {
		names = append(names, "net.ipv4.conf."+strings.ReplaceAll(link, ".", "/")+".forwarding")
	}
	differing := func() (differ []string) {
		for _, name := range names {
			if value, ok := kernel.Sysctl(files, name); ok && value != "1" {
				differ = append(differ, name)
			}
		}
		return differ
	}
	return step.Step{
		ID: "sysctls", Name: "set kernel settings",
		Check: func(context.Context) (diff step.Diff, err error) {
			for _, name := range differing() {
				diff = append(diff, fmt.Sprintf("set %s = 1", name))
			}
			return diff, nil
		},
		Apply: func(context.Context) error {
			return host.Each(differing(), func(name string) error { return kernel.SetSysctl(files, name, "1") })
		},
	}
}
