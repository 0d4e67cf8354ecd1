package containerd

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// otherFile remembers what was there before another CNI plugin came.
const otherFile = host.StateDir + "/other-cni.json"

// otherDirs are where CNI plugins put files, whoever made them.
var otherDirs = []string{cniConfDir, image.CNIDir, "/var/lib/cni/networks", "/var/lib/cni/results", "/var/lib/cni", "/run/flannel", "/var/lib/calico", "/run/calico", "/var/lib/weave"}

// otherLinks and otherChains belong to the plugins that are in wide use; a link
// of any other name may be somebody else's.
var (
	otherLinks  = []string{"cni0", "flannel.*", "flannel-*", "cali*", "vxlan.calico", "weave", "vethwe*", "datapath", "cilium_*"}
	otherChains = []string{"FLANNEL-", "cali-", "WEAVE", "CILIUM_"}
)

// LeaveCNI is the step that leaves the network of pods to another plugin. Apply
// only notes what is there; Undo removes what has come since, and the routes to
// pods of other hosts, which are within the cluster's network.
func (r Runtime) LeaveCNI(within netip.Prefix) step.Step {
	return step.Step{
		Name: "leave the pod network to another plugin",
		Check: func(context.Context) (step.Diff, error) {
			if r.Files.Exists(otherFile) {
				return nil, nil
			}
			return step.Diff{"note what is below " + cniConfDir + " and " + image.CNIDir}, nil
		},
		Apply: func(context.Context) error { return r.noteOther() },
		Undo:  func(context.Context) error { return r.removeOther(within) },
	}
}

// otherBefore is what Undo of LeaveCNI shall leave. A directory without an
// entry here did not exist.
type otherBefore struct {
	Dirs  map[string][]string `json:"dirs"`
	Links []string            `json:"links"`
}

func (r Runtime) noteOther() error {
	if r.Files.Exists(otherFile) {
		return nil
	}
	before := otherBefore{Dirs: map[string][]string{}}
	for _, dir := range otherDirs {
		if !r.Files.Exists(dir) {
			continue
		}
		names, err := r.Files.Entries(dir)
		if err != nil {
			return err
		}
		before.Dirs[dir] = append([]string{}, names...)
	}
	links, err := host.Links()
	if err != nil {
		return err
	}
	for _, l := range links {
		before.Links = append(before.Links, l.Name)
	}
	return r.Files.Remember(otherFile, before)
}

func (r Runtime) removeOther(within netip.Prefix) error {
	var before otherBefore
	if known, err := r.Files.Recall(otherFile, &before); err != nil || !known {
		return err
	}
	errs := []error{removeLinks(before.Links), host.DeleteRoutesVia(within)}
	for _, prefix := range otherChains {
		errs = append(errs, host.DeleteChainsEverywhere(prefix))
	}
	for _, dir := range otherDirs {
		errs = append(errs, r.removeSince(dir, before.Dirs))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.Files.Remove(otherFile)
}

func (r Runtime) removeSince(dir string, before map[string][]string) error {
	names, existed := before[dir]
	if !existed {
		return os.RemoveAll(r.Files.Path(dir))
	}
	if !r.Files.Exists(dir) {
		return nil
	}
	return r.Files.RemoveOthers(dir, names)
}

func removeLinks(before []string) error {
	links, err := host.Links()
	errs := []error{err}
	for _, l := range links {
		if !slices.Contains(before, l.Name) && slices.ContainsFunc(otherLinks, func(pattern string) bool { return matches(pattern, l.Name) }) {
			errs = append(errs, host.DeleteLink(l.Name))
		}
	}
	return errors.Join(errs...)
}

func matches(pattern, name string) bool {
	ok, err := filepath.Match(pattern, name)
	return ok && err == nil
}
