package flannel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bridgeNetfilter is a module without which flanneld refuses to start.
const bridgeNetfilter = "br_netfilter"

// linkModules names the kernel module by which each backend makes its link;
// host-gw makes none.
var linkModules = map[string]string{"vxlan": "vxlan", "wireguard": "wireguard", "ipip": "ipip", "udp": "tun"}

// modulesFile lists the kernel modules that came with flanneld.
const modulesFile = host.StateDir + "/flannel-modules.json"

// ModuleProblems names the kernel modules that are missing on this host
// [bridge-netfilter, backend-module]. It loads none.
func (n Network) ModuleProblems(ctx context.Context) error {
	module := linkModules[n.backend()]
	var errs []error
	if err := offers(ctx, bridgeNetfilter); err != nil {
		errs = append(errs, problemOf(err, step.Problem{Name: "bridge-netfilter",
			Text: "flanneld needs the kernel module br_netfilter, which this host does not have", Remedy: "install it (on Debian and Ubuntu: the kernel's own package)"}))
	}
	if module == "" {
		return errors.Join(errs...)
	}
	if err := offers(ctx, module); err != nil {
		errs = append(errs, problemOf(err, step.Problem{Name: "backend-module",
			Text:   fmt.Sprintf("flannelBackend: %s needs the kernel module %s, which this host does not have", n.backend(), module),
			Remedy: "install the module, or choose another backend on all hosts: host-gw needs none"}))
	}
	return errors.Join(errs...)
}

var errNoModule = errors.New("no such kernel module")

func offers(ctx context.Context, module string) error {
	ok, err := host.OffersModule(ctx, module)
	if err == nil && !ok {
		err = errNoModule
	}
	return err
}

func problemOf(err error, p step.Problem) error {
	if errors.Is(err, errNoModule) {
		return &p
	}
	return err
}

// loadModules loads what flanneld may not load itself, and its link's module
// too, so that we know that it is ours to unload.
func (d Daemon) loadModules(ctx context.Context) error {
	if !host.HasBridgeNetfilter() {
		if err := d.load(ctx, bridgeNetfilter); err != nil {
			return fmt.Errorf("flanneld needs the kernel module %s: %w", bridgeNetfilter, err)
		}
	}
	if module := linkModules[d.Backend]; module != "" && !host.ModuleLoaded(module) {
		// One that was built in is not seen, and cannot be loaded either: that
		// there is none was told before, and flanneld tells again.
		_ = d.load(ctx, module)
	}
	return ctx.Err()
}

// load notes first what it is about to load.
func (d Daemon) load(ctx context.Context, module string) error {
	missing, err := host.ModulesOf(ctx, module)
	if err != nil {
		return err
	}
	noted, err := d.loaded()
	if err != nil {
		return err
	}
	for _, m := range missing {
		if !slices.Contains(noted, m) {
			noted = append(noted, m)
		}
	}
	if err := d.Files.Remember(modulesFile, noted); err != nil {
		return err
	}
	return host.LoadModule(ctx, module)
}

func (d Daemon) loaded() (modules []string, err error) {
	_, err = d.Files.Recall(modulesFile, &modules)
	return modules, err
}

// unloadModules takes out what loadModules brought, the last one first, and
// leaves what somebody else has come to use meanwhile.
func (d Daemon) unloadModules(ctx context.Context) error {
	modules, err := d.loaded()
	if err != nil {
		return err
	}
	for _, module := range slices.Backward(modules) {
		if d.KeepModule != nil && d.KeepModule(ctx, module) {
			continue
		}
		if err := host.UnloadModule(module); err != nil {
			return err
		}
	}
	return d.Files.Remove(modulesFile)
}
