package image

import (
	"maps"
	"slices"
	"strings"
)

// programImage is an image of components of a checkout that differ from hyperkube's.
type programImage struct {
	name     string
	programs []string
	store    Store
	whole    bool // it needs the userland of hyperkube
	control  bool // only control planes run it
}

var programImages = []programImage{
	{name: "kube-apiserver", programs: []string{"kube-apiserver"}, store: Containerd, control: true},
	{name: "kube-controller-manager", programs: []string{"kube-controller-manager"}, store: Containerd, control: true},
	{name: "kube-scheduler", programs: []string{"kube-scheduler"}, store: Containerd, control: true},
	{name: "kube-proxy", programs: []string{"kube-proxy"}, store: Containerd, whole: true},
	// kubectl is called in its container
	{name: "kubelet", programs: []string{"kubelet", "kubectl"}, store: Main, whole: true},
}

// ref derives the tag of an image from its content, so that a node never runs
// old content under a new name.
func (i programImage) ref(v Versions) (ref string, needed bool) {
	var keys []string
	for _, p := range i.programs {
		if _, key, own := strings.Cut(v.Programs[p], "+"); own {
			keys = append(keys, key)
		}
	}
	return OurRegistry + "/" + i.name + ":" + v.Kubernetes + "-" + strings.Join(keys, "-"), len(keys) > 0
}

func ownPrograms(v Versions) (all []Image) {
	for _, i := range programImages {
		if ref, needed := i.ref(v); needed {
			all = append(all, Image{Name: i.name, Ref: ref, Stores: []Store{i.store}})
		}
	}
	return all
}

// ProgramRef returns the reference of the image that contains a component.
func ProgramRef(v Versions, program string) string {
	for _, i := range programImages {
		if ref, needed := i.ref(v); needed && slices.Contains(i.programs, program) {
			return ref
		}
	}
	return Ref(v, "hyperkube")
}

// ProgramVersion returns the version that a component reports.
func (v Versions) ProgramVersion(program string) string {
	if own := v.Programs[program]; own != "" {
		return own
	}
	return v.Kubernetes
}

// OnWorker returns the versions without components that only control planes run.
func (v Versions) OnWorker() Versions {
	v.Programs = maps.Clone(v.Programs)
	maps.DeleteFunc(v.Programs, func(program, _ string) bool {
		return slices.ContainsFunc(programImages,
			func(i programImage) bool { return i.control && slices.Contains(i.programs, program) })
	})
	if len(v.Programs) == 0 {
		v.Programs = nil
	}
	return v
}
