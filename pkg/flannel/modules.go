package flannel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// bridgeNetfilter is the module without which flanneld does not start.
// https://github.com/flannel-io/flannel/blob/v0.28.10/main.go#L288-L295
const bridgeNetfilter = "br_netfilter"

// linkModules maps a backend to the kernel module of its link. host-gw needs none.
var linkModules = map[string]string{"vxlan": "vxlan", "wireguard": "wireguard", "ipip": "ipip", "udp": "tun"}

// moduleRecord lists the kernel modules that were loaded for flanneld. An
// empty list means that the record was lost.
var moduleRecord = host.Record[[]string]{Path: host.StateDir + "/flannel-modules.json",
	Valid: func(names []string) error {
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
func (n NetworkConfig) ModuleProblems(ctx context.Context) error {
	err := missing(ctx, bridgeNetfilter, step.Problem{Name: "bridge-netfilter",
		Text:   "flanneld needs the kernel module br_netfilter, which this host does not have",
		Remedy: "install it (on Debian and Ubuntu: the kernel's own package)"})
	module := linkModules[n.backend()]
	if module == "" {
		return err
	}
	return errors.Join(err, missing(ctx, module, step.Problem{Name: "backend-module",
		Text: fmt.Sprintf("flannelBackend: %s needs the kernel module %s, which this host does not have",
			n.backend(), module),
		Remedy: "install the module, or choose another backend on all hosts: host-gw needs none"}))
}

// missing returns p if this host does not have a module.
func missing(ctx context.Context, module string, p step.Problem) error {
	if ok, err := kernel.OffersModule(ctx, module); err != nil || ok {
		return err
	}
	return &p
}

// loadModules loads the module that flanneld cannot load itself, and the module of its
// link, which moduleRecord then lists for Undo.
func loadModules(ctx context.Context, files host.Files, backend string) error {
	if !kernel.HasBridgeNetfilter() {
		if err := load(ctx, files, bridgeNetfilter); err != nil {
			return fmt.Errorf("flanneld needs the kernel module %s: %w", bridgeNetfilter, err)
		}
	}
	if module := linkModules[backend]; module != "" && !kernel.ModuleLoaded(module) {
		// A module may be built in, which is not visible and fails here.
		// ModuleProblems has reported a missing one.
		_ = load(ctx, files, module)
	}
	return ctx.Err()
}

// load records the modules, then loads them.
func load(ctx context.Context, files host.Files, module string) error {
	missing, err := kernel.ModulesOf(ctx, module)
	if err != nil {
		return err
	}
	noted, err := moduleRecord.Read(files)
	if err != nil && !host.Lost(err) {
		return err
	}
	for _, m := range missing {
		if !slices.Contains(noted, m) {
			noted = append(noted, m)
		}
	}
	if len(noted) > 0 {
		if err := moduleRecord.Write(files, noted); err != nil {
			return err
		}
	}
	return kernel.LoadModule(ctx, module)
}

// repairModules replaces a damaged record by an empty list.
func repairModules(files host.Files) error {
	if diff, err := moduleRecord.DiffIfSaved(files); err != nil || len(diff) == 0 {
		return err
	}
	return moduleRecord.Write(files, []string{})
}

// unloadModules unloads the recorded modules, the last one first. It skips
// modules that are in use, or that keep reports, and unloads none from a kernel that is shared.
func unloadModules(ctx context.Context, files host.Files, keep func(context.Context, string) bool) error {
	modules, err := moduleRecord.Read(files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case host.IsDamaged(err) || err == nil && len(modules) == 0:
		step.Leave(ctx, "kernel modules that flanneld needed: "+moduleRecord.Path+
			" was lost, so they stay until the next boot")
	case err != nil:
		return err
	}
	for _, module := range slices.Backward(modules) {
		// Other hosts may have links that need the module, which this host does not see.
		if kernel.Shared() || keep != nil && keep(ctx, module) {
			continue
		}
		if err := kernel.UnloadModule(module); err != nil {
			step.Leave(ctx, fmt.Sprintf("kernel module %s: %v; it stays until the next boot", module, err))
		}
	}
	return files.Remove(moduleRecord.Path)
}
