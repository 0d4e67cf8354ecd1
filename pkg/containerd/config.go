package containerd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	cniBinDir  = "/opt/cni/bin"
	cniConfDir = "/etc/cni/net.d"
)

// configMark is the first line of a config that kube-bootstrap wrote. It
// identifies the file if the record of the original was lost.
const configMark = "# Written by kube-bootstrap; its turndown restores the original file.\n"

// wanted is the configuration that pods need.
type wanted struct {
	SandboxImage  string
	SystemdCgroup bool
	RestrictOOM   bool
	Registry      bool // a private registry is configured
}

// criNames are all names under which CRI can be disabled.
var criNames = []string{"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"}

// configFile is config.toml and the list of its changes.
type configFile struct {
	root map[string]any
	diff step.Diff
}

// mergeConfig returns the config with the wanted values, and the changes. It
// keeps all other values, and does not write defaults. The version of the
// file stays, because a later containerd reads it too:
//
//	version   sandbox image                                   everything else of CRI
//	1         plugins.cri.sandbox_image                       plugins.cri
//	2         plugins."io.containerd.grpc.v1.cri".sandbox_image  the same
//	3         plugins."io.containerd.cri.v1.images".pinned_images.sandbox  plugins."io.containerd.cri.v1.runtime"
func mergeConfig(data []byte, major int, w wanted) ([]byte, step.Diff, error) {
	c := configFile{root: map[string]any{}}
	if err := toml.Unmarshal(data, &c.root); err != nil {
		return nil, nil, &step.Problem{Name: "containerd-config", Text: configPath + ": " + err.Error(), Remedy: "correct it"}
	}
	if len(c.root) == 0 {
		c.root["version"] = int64(min(major, 2) + 1)
	}
	c.enableCRI()
	c.set(w.SandboxImage, c.sandboxImage()...)
	c.setRuntime(c.runtime(), w)
	if w.Registry {
		if err := c.setHosts(); err != nil {
			return nil, nil, err
		}
	}
	out, err := toml.Marshal(c.root)
	return append([]byte(configMark), out...), c.diff, err
}

func (c *configFile) sandboxImage() []string {
	if version, _ := c.root["version"].(int64); version >= 3 {
		return []string{"plugins", "io.containerd.cri.v1.images", "pinned_images", "sandbox"}
	}
	return append(c.runtime(), "sandbox_image")
}

func (c *configFile) runtime() []string {
	switch version, _ := c.root["version"].(int64); {
	case version >= 3:
		return []string{"plugins", "io.containerd.cri.v1.runtime"}
	case version == 2:
		return []string{"plugins", "io.containerd.grpc.v1.cri"}
	}
	return []string{"plugins", "cri"}
}

// withoutOurs returns a config without the values that mergeConfig sets, or
// nil if nothing else remains. It cannot restore values that these replaced.
func withoutOurs(data []byte, w wanted) ([]byte, error) {
	c := configFile{root: map[string]any{}}
	if err := toml.Unmarshal(data, &c.root); err != nil {
		return nil, &step.Problem{Name: "containerd-config", Text: configPath + ": " + err.Error(), Remedy: "correct it"}
	}
	c.drop(w.SandboxImage, c.sandboxImage()...)
	c.drop(true, append(c.runtime(), "restrict_oom_score_adj")...)
	c.drop(hostsDir, append(c.registryTable(), "config_path")...)
	if version, only := c.root["version"]; only && len(c.root) == 1 && version != nil || len(c.root) == 0 {
		return nil, nil
	}
	return toml.Marshal(c.root)
}

// drop removes a value if it equals value, and then empty tables.
func (c *configFile) drop(value any, path ...string) {
	if !reflect.DeepEqual(c.get(path...), value) {
		return
	}
	for ; len(path) > 0; path = path[:len(path)-1] {
		parent, _ := c.get(path[:len(path)-1]...).(map[string]any)
		delete(parent, path[len(path)-1])
		if len(parent) > 0 {
			return
		}
	}
}

// oldRegistryTable returns the problem that the config has a table of
// registries that containerd does not accept together with config_path.
func oldRegistryTable(name string) error {
	return &step.Problem{Name: "containerd-registry", Text: configPath + ": its CRI has registry." + name + ", which containerd does not accept together with a private registry",
		Remedy: "move it into " + hostsDir + " and remove it there"}
}

func (c *configFile) enableCRI() {
	disabled, _ := c.root["disabled_plugins"].([]any)
	left := slices.DeleteFunc(slices.Clone(disabled), func(name any) bool {
		s, _ := name.(string)
		return slices.Contains(criNames, s)
	})
	if len(left) != len(disabled) {
		c.root["disabled_plugins"] = left
		c.diff = append(c.diff, "change "+configPath+": CRI is not disabled")
	}
}

func (c *configFile) setRuntime(base []string, w wanted) {
	under := func(path ...string) []string { return append(slices.Clone(base), path...) }
	if w.RestrictOOM {
		c.set(true, under("restrict_oom_score_adj")...)
	}
	if c.get(under("cni", "bin_dir")...) != nil {
		c.set(cniBinDir, under("cni", "bin_dir")...)
	}
	if dirs, ok := c.get(under("cni", "bin_dirs")...).([]any); ok && !slices.Contains(dirs, any(cniBinDir)) {
		c.set(append([]any{cniBinDir}, dirs...), under("cni", "bin_dirs")...)
	}
	if c.get(under("cni", "conf_dir")...) != nil {
		c.set(cniConfDir, under("cni", "conf_dir")...)
	}
	name, _ := c.get(under("containerd", "default_runtime_name")...).(string)
	if name == "" {
		name = "runc"
	}
	c.setCgroup(under("containerd", "runtimes", name), w.SystemdCgroup)
}

// setCgroup sets the cgroup driver of a runtime. The default is cgroupfs.
func (c *configFile) setCgroup(runtime []string, systemd bool) {
	option := append(slices.Clone(runtime), "options", "SystemdCgroup")
	if now, _ := c.get(option...).(bool); now == systemd {
		return
	}
	if kind := append(slices.Clone(runtime), "runtime_type"); c.get(kind...) == nil {
		c.set("io.containerd.runc.v2", kind...)
	}
	c.set(systemd, option...)
}

func (c *configFile) get(path ...string) any {
	var now any = c.root
	for _, name := range path {
		table, _ := now.(map[string]any)
		now = table[name]
	}
	return now
}

func (c *configFile) set(value any, path ...string) {
	if reflect.DeepEqual(c.get(path...), value) {
		return
	}
	table := c.root
	for _, name := range path[:len(path)-1] {
		next, ok := table[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			table[name] = next
		}
		table = next
	}
	table[path[len(path)-1]] = value
	c.diff = append(c.diff, fmt.Sprintf("change %s: %s = %v", configPath, strings.Join(path[2:], "."), value))
}
