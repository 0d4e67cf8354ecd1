package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bridgeNetfilter is the module without which flanneld does not start.
const bridgeNetfilter = "br_netfilter"

// linkModules maps a backend to the kernel module of its link. host-gw needs
// none.
var linkModules = map[string]string{"vxlan": "vxlan", "wireguard": "wireguard", "ipip": "ipip", "udp": "tun"}

// moduleRecord lists the kernel modules that were loaded for flanneld. An
// empty list means that the record was lost.
var moduleRecord = host.Record[[]string]{Path: host.StateDir + "/flannel-modules.json", Valid: func(names []string) error {
	for _, name := range names {
		if !moduleName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a kernel module", name)
		}
	}
	return nil
}}

var moduleName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// ModuleProblems returns a problem for each kernel module that this host
// lacks [bridge-netfilter, backend-module]. It loads none.
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

// loadModules loads the module that flanneld cannot load itself, and the
// module of its link, so that moduleRecord lists them for Undo.
func (d Daemon) loadModules(ctx context.Context) error {
	if !host.HasBridgeNetfilter() {
		if err := d.load(ctx, bridgeNetfilter); err != nil {
			return fmt.Errorf("flanneld needs the kernel module %s: %w", bridgeNetfilter, err)
		}
	}
	if module := linkModules[d.Backend]; module != "" && !host.ModuleLoaded(module) {
		// A module may be built in, which is not visible and fails here.
		// ModuleProblems has reported a missing one.
		_ = d.load(ctx, module)
	}
	return ctx.Err()
}

// load records the modules, then loads them.
func (d Daemon) load(ctx context.Context, module string) error {
	missing, err := host.ModulesOf(ctx, module)
	if err != nil {
		return err
	}
	noted, err := moduleRecord.Read(d.Files)
	if err != nil && !host.Lost(err) {
		return err
	}
	for _, m := range missing {
		if !slices.Contains(noted, m) {
			noted = append(noted, m)
		}
	}
	if len(noted) > 0 {
		if err := moduleRecord.Write(d.Files, noted); err != nil {
			return err
		}
	}
	return host.LoadModule(ctx, module)
}

// modulesDiff verifies the record, if it exists.
func (d Daemon) modulesDiff() (step.Diff, error) {
	if !d.Files.Exists(moduleRecord.Path) {
		return nil, nil
	}
	return moduleRecord.Diff(d.Files)
}

// repairModules replaces a damaged record by an empty list.
func (d Daemon) repairModules() error {
	if diff, err := d.modulesDiff(); err != nil || len(diff) == 0 {
		return err
	}
	return moduleRecord.Write(d.Files, []string{})
}

// unloadModules unloads the recorded modules, the last one first. It skips
// modules that are in use.
func (d Daemon) unloadModules(ctx context.Context) error {
	modules, err := moduleRecord.Read(d.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case host.IsDamaged(err) || err == nil && len(modules) == 0:
		step.Leave(ctx, "kernel modules that flanneld needed: "+moduleRecord.Path+" was lost, so they stay until the next boot")
	case err != nil:
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
	return d.Files.Remove(moduleRecord.Path)
}
