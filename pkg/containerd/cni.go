package containerd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// ConfigFile is the CNI config that WriteCNI writes.
const ConfigFile = cniConfDir + "/10-kube-bootstrap.conflist"

const networkName = "kube-bootstrap"

// WriteCNI is the step that configures CNI: pods get an interface on docker0, with an address in the upper half of the
// subnet; Docker uses the lower half. Apply only writes a file.
func WriteCNI(files host.Files, lease func() (subnet.Lease, error)) step.Step {
	tree := func() ([]host.File, error) {
		leased, err := lease()
		if err != nil {
			return nil, err
		}
		data, err := cniConfig(leased.Subnet, leased.MTU)
		return []host.File{{Path: ConfigFile, Data: data}}, err
	}
	s := files.Step("cni-config", "write the CNI config", tree)
	s.Check = func(context.Context) (step.Diff, error) {
		all, err := tree()
		if err != nil {
			return step.Diff{"write " + ConfigFile + ", once this host's subnet is known (" + err.Error() + ")"}, nil
		}
		return files.Missing(all)
	}
	s.Undo = func(context.Context) error { return files.Drop(ConfigFile) }
	return s
}

type object = map[string]any

// cniConfig does not set docker0's address (isGateway false), because Docker does, and does not masquerade (ipMasq
// false), because flanneld does. A pod can reach itself through a Service (hairpinMode).
func cniConfig(subnet netip.Prefix, mtu int) ([]byte, error) {
	first, last, err := upperHalf(subnet)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       networkName,
		"plugins": []object{
			{
				"type": "bridge", "bridge": bridgeName, "isGateway": false, "ipMasq": false,
				"hairpinMode": true, "mtu": mtu,
				"ipam": object{
					"type": "host-local",
					"ranges": [][]object{{{
						"subnet": subnet.Masked().String(), "rangeStart": first.String(), "rangeEnd": last.String(),
						"gateway": subnet.Addr().String(),
					}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	return append(data, '\n'), err
}

// upperHalf returns the first and the last address for pods, below the broadcast address.
func upperHalf(subnet netip.Prefix) (first, last netip.Addr, err error) {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 29 {
		return first, last, fmt.Errorf("the subnet %s is too small for pods", subnet)
	}
	base := subnet.Masked().Addr().As4()
	start := binary.BigEndian.Uint32(base[:])
	size := uint32(1) << (32 - subnet.Bits())
	return addr(start + size/2), addr(start + size - 2), nil
}

func addr(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// CNIProblems returns a problem for each CNI configuration that containerd would use instead of the configuration of
// this cluster [cni-config].
func CNIProblems(files host.Files, ours bool) error {
	var errs []error
	for _, pattern := range []string{"*.conf", "*.conflist", "*.json"} {
		for _, path := range files.Match(cniConfDir + "/" + pattern) {
			if ours && filepath.Base(path) >= filepath.Base(ConfigFile) {
				continue
			}
			errs = append(errs, &step.Problem{Name: "cni-config",
				Text:   path + " configures another pod network, which containerd would use",
				Remedy: "move it to another directory"})
		}
	}
	return errors.Join(errs...)
}

// otherRecord is the state before another CNI plugin was installed.
var otherRecord = host.Record[otherBefore]{Path: host.StateDir + "/other-cni.json", Valid: otherBefore.valid}

// otherDirs are the directories in which CNI plugins create files.
var otherDirs = []string{cniConfDir, image.CNIDir, "/var/lib/cni/networks", "/var/lib/cni/results", "/var/lib/cni",
	"/run/flannel", "/var/lib/calico", "/run/calico", "/var/lib/weave"}

// otherLinks and otherChains belong to common plugins.
var (
	otherLinks = []string{"cni0", "flannel.*", "flannel-*", "cali*", "vxlan.calico", "weave", "vethwe*",
		"datapath", "cilium_*"}
	otherChains = []string{"FLANNEL-", "cali-", "WEAVE", "CILIUM_"}
)

// LeaveCNIID identifies LeaveCNI.
const LeaveCNIID step.ID = "other-cni"

// LeaveCNI is the step for a pod network by another plugin. Apply only records the current state. Undo removes what
// was created since, and routes inside of within.
func LeaveCNI(files host.Files, socket Socket, within netip.Prefix) step.Step {
	return step.Step{
		ID: LeaveCNIID, Name: "leave the pod network to another plugin",
		Check: func(context.Context) (step.Diff, error) { return otherRecord.Diff(files) },
		Apply: func(context.Context) error {
			return otherRecord.Ensure(files,
				func(error) (otherBefore, error) { return lookOther(files, files.Exists(podsFile)) })
		},
		Undo: func(ctx context.Context) error { return removeOther(ctx, files, socket, within) },
	}
}

// otherBefore is what Undo of LeaveCNI keeps. A directory that is not listed did not exist.
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

// lookOther lists the files of other CNI plugins. If the record was lost, it is late: files of common plugins may have
// been created since, so the result omits them.
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
	return slices.ContainsFunc([]string{"flannel", "calico", "weave", "cilium"},
		func(plugin string) bool { return strings.Contains(name, plugin) })
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
		host.Each(otherChains, func(prefix string) error { return netfilter.DeleteChainsEverywhere(ctx, prefix) }),
		host.Each(otherDirs, func(dir string) error {
			names, existed := before.Dirs[dir]
			if !existed {
				return files.RemoveAll(dir)
			}
			return files.RemoveOthers(dir, names)
		}),
	)
	if err != nil {
		return err
	}
	return files.Remove(otherRecord.Path)
}

func removeLinks(before []string) error {
	found, err := links.All()
	return errors.Join(err, host.Each(found, func(l links.Link) error {
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
