package containerd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd/pluginname"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	cniBinDir  = "/opt/cni/bin"
	cniConfDir = "/etc/cni/net.d"
)

// configMark is the first line of our config. This line identifies our file if the record was lost.
const configMark = "# Written by kube-bootstrap; its turndown restores the original file.\n"

// wanted is the configuration that pods need.
type wanted struct {
	SandboxImage  string
	SystemdCgroup bool
	RestrictOOM   bool
	Registry      bool // a private registry or mirrors are configured
}

// criNames are all names under which CRI can be disabled.
var criNames = []string{"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images",
	"io.containerd.cri.v1.runtime"}

// configFile is config.toml, with the names of version 2 or later, and the list of its changes.
type configFile struct {
	root    map[string]any
	changes []string // "sandbox = registry.k8s.io/pause:3.10"
}

// currentConfig returns the content of config.toml, nil if it does not exist.
func currentConfig(files host.Files) ([]byte, error) {
	data, err := files.Read(configPath)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func parseConfig(data []byte) (*configFile, error) {
	c := &configFile{root: map[string]any{}}
	if err := toml.Unmarshal(data, &c.root); err != nil {
		return nil, configProblem(err.Error())
	}
	if err := c.toVersion2(); err != nil {
		return nil, configProblem(err.Error())
	}
	return c, nil
}

func configProblem(text string) error {
	return &step.Problem{Name: "containerd-config", Text: configPath + ": " + text, Remedy: "correct it"}
}

// mergeConfig returns the config with the wanted values, and the changes. It keeps all other values, and does not
// write defaults. A version of 2 or more stays, because a later containerd reads it too:
//
//	version   sandbox image                                   everything else of CRI
//	2         plugins."io.containerd.grpc.v1.cri".sandbox_image  the same
//	3, 4      plugins."io.containerd.cri.v1.images".pinned_images.sandbox  plugins."io.containerd.cri.v1.runtime"
func mergeConfig(data []byte, major uint, w wanted) ([]byte, step.Diff, error) {
	c, err := parseConfig(data)
	if err != nil {
		return nil, nil, err
	}
	if len(c.root) == 0 {
		c.root["version"] = int64(min(major, 2) + 1)
	}
	if err := c.merge(w); err != nil {
		return nil, nil, err
	}
	out, err := toml.Marshal(c.root)
	return append([]byte(configMark), out...), c.diff(), err
}

func (c *configFile) merge(w wanted) error {
	c.enableCRI()
	c.set(w.SandboxImage, c.sandboxImage()...)
	c.setRuntime(w)
	if !w.Registry {
		return nil
	}
	return c.setHosts()
}

func (c *configFile) diff() (all step.Diff) {
	for _, change := range c.changes {
		all = append(all, "change "+configPath+": "+change)
	}
	return all
}

func (c *configFile) sandboxImage() []string {
	if c.version() >= 3 {
		return c.cri("images", "pinned_images", "sandbox")
	}
	return c.cri("images", "sandbox_image")
}

func (c *configFile) registry(name string) []string { return c.cri("images", "registry", name) }

// cri returns a path in the settings of "images" or of the "runtime" of CRI.
func (c *configFile) cri(part string, path ...string) []string {
	plugin := "io.containerd.grpc.v1.cri"
	if c.version() >= 3 {
		plugin = "io.containerd.cri.v1." + part
	}
	return append([]string{"plugins", plugin}, path...)
}

func (c *configFile) version() int64 {
	version, _ := c.root["version"].(int64)
	return version
}

// withoutOurs returns a config without the values that mergeConfig sets, or nil if nothing else remains. It cannot
// restore values that these replaced.
func withoutOurs(data []byte, w wanted) ([]byte, error) {
	c, err := parseConfig(data)
	if err != nil {
		return nil, err
	}
	c.drop(w.SandboxImage, c.sandboxImage()...)
	c.drop(true, c.cri("runtime", "restrict_oom_score_adj")...)
	c.drop(hostsDir, c.registry("config_path")...)
	if _, has := c.root["version"]; len(c.root) == 0 || has && len(c.root) == 1 {
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

// setHosts sets config_path, which containerd does not accept together with some older tables.
// https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/config/config.go#L499-L502
func (c *configFile) setHosts() error {
	if now, _ := c.get(c.registry("config_path")...).(string); now != "" {
		return nil
	}
	for _, old := range []string{"mirrors", "configs"} {
		if set, _ := c.get(c.registry(old)...).(map[string]any); len(set) > 0 {
			return &step.Problem{
				Name: "containerd-registry", Text: configPath + ": its CRI has registry." + old +
					", which containerd does not accept together with a private registry",
				Remedy: "move it into " + hostsDir + " and remove it there",
			}
		}
	}
	c.set(hostsDir, c.registry("config_path")...)
	return nil
}

func (c *configFile) enableCRI() {
	disabled, _ := c.root["disabled_plugins"].([]any)
	left := slices.DeleteFunc(slices.Clone(disabled), func(name any) bool {
		s, _ := name.(string)
		return slices.Contains(criNames, s)
	})
	if len(left) != len(disabled) {
		c.root["disabled_plugins"] = left
		c.changes = append(c.changes, "CRI is not disabled")
	}
}

func (c *configFile) setRuntime(w wanted) {
	under := func(path ...string) []string { return c.cri("runtime", path...) }
	if w.RestrictOOM {
		c.set(true, under("restrict_oom_score_adj")...)
	}
	dirs, _ := c.get(under("cni", "bin_dirs")...).([]any)
	if len(dirs) > 0 && !slices.Contains(dirs, any(cniBinDir)) {
		c.set(append([]any{cniBinDir}, dirs...), under("cni", "bin_dirs")...)
	}
	// `containerd config dump` of 2.1 and later prints an empty bin_dir beside bin_dirs.
	if dir := c.get(under("cni", "bin_dir")...); dir != nil && (dir != "" || len(dirs) == 0) {
		c.set(cniBinDir, under("cni", "bin_dir")...)
	}
	if c.get(under("cni", "conf_dir")...) != nil {
		c.set(cniConfDir, under("cni", "conf_dir")...)
	}
	name, _ := c.get(under("containerd", "default_runtime_name")...).(string)
	c.setCgroup(under("containerd", "runtimes", cmp.Or(name, "runc")), w.SystemdCgroup)
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
	c.changes = append(c.changes, fmt.Sprintf("%s = %v", strings.Join(path[2:], "."), value))
}

// toVersion2 replaces the names of version 1, which is also the version of a file without one, as that of Docker's
// packages: containerd 2.0 to 2.2 ignores the settings of CRI with them
// (https://github.com/containerd/containerd/pull/12608). Every supported containerd reads version 2.
func (c *configFile) toVersion2() error {
	if c.version() >= 2 || len(c.root) == 0 {
		return nil
	}
	plugins := map[string]any{}
	old, _ := c.root["plugins"].(map[string]any)
	for name, settings := range old {
		full, err := pluginname.Full(name)
		if err != nil {
			return err
		}
		plugins[full] = settings
	}
	if len(plugins) > 0 {
		c.root["plugins"] = plugins
	}
	for _, list := range []string{"disabled_plugins", "required_plugins"} {
		if err := pluginname.ReplaceIn(c.root[list]); err != nil {
			return err
		}
	}
	c.root["version"] = int64(2)
	c.changes = append(c.changes, "version = 2")
	return nil
}
