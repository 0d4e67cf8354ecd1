package containerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// otherRecord is the state before another CNI plugin was installed.
var otherRecord = host.Record[otherBefore]{Path: host.StateDir + "/other-cni.json", Valid: otherBefore.valid}

// otherDirs are the directories in which CNI plugins create files.
var otherDirs = []string{cniConfDir, image.CNIDir, "/var/lib/cni/networks", "/var/lib/cni/results", "/var/lib/cni", "/run/flannel", "/var/lib/calico", "/run/calico", "/var/lib/weave"}

// otherLinks and otherChains belong to common plugins. Links with other names
// may belong to other programs.
var (
	otherLinks  = []string{"cni0", "flannel.*", "flannel-*", "cali*", "vxlan.calico", "weave", "vethwe*", "datapath", "cilium_*"}
	otherChains = []string{"FLANNEL-", "cali-", "WEAVE", "CILIUM_"}
)

// LeaveCNI is the step for a pod network by another plugin. Apply only
// records the current state. Undo removes what was created since, and routes
// to networks inside of within.
func LeaveCNI(files host.Files, socket Socket, within netip.Prefix) step.Step {
	return step.Step{
		Name:  "leave the pod network to another plugin",
		Check: func(context.Context) (step.Diff, error) { return otherRecord.Diff(files) },
		Apply: func(context.Context) error {
			return otherRecord.Ensure(files, func(error) (otherBefore, error) { return lookOther(files, files.Exists(podsFile)) })
		},
		Undo: func(ctx context.Context) error { return removeOther(ctx, files, socket, within) },
	}
}

// otherBefore is what Undo of LeaveCNI keeps. A directory that is not listed
// did not exist.
type otherBefore struct {
	Dirs  map[string][]string `json:"dirs"`
	Links []string            `json:"links"`
}

func (o otherBefore) valid() error {
	if o.Dirs == nil {
		return errors.New("it lists no directories")
	}
	for dir := range o.Dirs {
		if !slices.Contains(otherDirs, dir) {
			return fmt.Errorf("%q is not a directory of CNI plugins", dir)
		}
	}
	return nil
}

// lookOther lists the files of other CNI plugins. late means that the record
// was lost: the result then omits files of common plugins, because they may
// have been created after kube-bootstrap was set up.
func lookOther(files host.Files, late bool) (otherBefore, error) {
	before := otherBefore{Dirs: map[string][]string{}}
	for _, dir := range otherDirs {
		if !files.Exists(dir) || late && !slices.Contains([]string{cniConfDir, image.CNIDir}, dir) {
			continue
		}
		names, err := files.Entries(dir)
		if err != nil {
			return before, err
		}
		before.Dirs[dir] = append([]string{}, names...)
		if late {
			before.Dirs[dir] = slices.DeleteFunc(before.Dirs[dir], ofOtherPlugin)
		}
	}
	if late {
		return before, nil
	}
	found, err := links.All()
	for _, l := range found {
		before.Links = append(before.Links, l.Name)
	}
	return before, err
}

// ofOtherPlugin reports whether a file name is one of a common plugin.
func ofOtherPlugin(name string) bool {
	return slices.ContainsFunc([]string{"flannel", "calico", "weave", "cilium"}, func(plugin string) bool { return strings.Contains(name, plugin) })
}

func removeOther(ctx context.Context, files host.Files, socket Socket, within netip.Prefix) error {
	before, err := otherRecord.Read(files)
	if errors.Is(err, fs.ErrNotExist) {
		if _, made, asked := socket.hasNamespace(ctx); asked != nil || !made {
			return asked
		}
	}
	if host.Lost(err) {
		before, err = lookOther(files, true)
	}
	if err != nil {
		return err
	}
	err = errors.Join(
		removeLinks(before.Links), links.DeleteRoutesVia(within),
		forEach(otherChains, func(prefix string) error { return netfilter.DeleteChainsEverywhere(ctx, prefix) }),
		forEach(otherDirs, func(dir string) error { return removeSince(files, dir, before.Dirs) }),
	)
	if err != nil {
		return err
	}
	return files.Remove(otherRecord.Path)
}

func removeSince(files host.Files, dir string, before map[string][]string) error {
	names, existed := before[dir]
	if !existed {
		return os.RemoveAll(files.Path(dir))
	}
	return files.RemoveOthers(dir, names)
}

func removeLinks(before []string) error {
	found, err := links.All()
	return errors.Join(err, forEach(found, func(l links.Link) error {
		ofPlugin := func(pattern string) bool {
			ok, _ := path.Match(pattern, l.Name)
			return ok
		}
		if slices.Contains(before, l.Name) || !slices.ContainsFunc(otherLinks, ofPlugin) {
			return nil
		}
		return links.Delete(l.Name)
	}))
}
