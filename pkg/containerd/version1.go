package containerd

import (
	"fmt"
	"strings"
)

// fullNames contains the plugins that a config of version 1 could name, by their short names.
var fullNames = map[string]string{
	"cri":       "io.containerd.grpc.v1.cri",
	"cgroups":   "io.containerd.monitor.v1.cgroups",
	"linux":     "io.containerd.runtime.v1.linux",
	"task":      "io.containerd.runtime.v2.task",
	"scheduler": "io.containerd.gc.v1.scheduler",
	"bolt":      "io.containerd.metadata.v1.bolt",
	"opt":       "io.containerd.internal.v1.opt",
	"restart":   "io.containerd.internal.v1.restart",
	"tracing":   "io.containerd.internal.v1.tracing",
	"otlp":      "io.containerd.tracing.processor.v1.otlp",
	"aufs":      "io.containerd.snapshotter.v1.aufs",
	"btrfs":     "io.containerd.snapshotter.v1.btrfs",
	"devmapper": "io.containerd.snapshotter.v1.devmapper",
	"native":    "io.containerd.snapshotter.v1.native",
	"overlayfs": "io.containerd.snapshotter.v1.overlayfs",
	"zfs":       "io.containerd.snapshotter.v1.zfs",
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
		full, err := fullName(name)
		if err != nil {
			return err
		}
		plugins[full] = settings
	}
	if len(plugins) > 0 {
		c.root["plugins"] = plugins
	}
	for _, list := range []string{"disabled_plugins", "required_plugins"} {
		if err := fullNamesIn(c.root[list]); err != nil {
			return err
		}
	}
	c.root["version"] = int64(2)
	c.changes = append(c.changes, "version = 2")
	return nil
}

// fullNamesIn replaces the names in a list of plugins.
func fullNamesIn(list any) error {
	names, _ := list.([]any)
	for i, name := range names {
		short, _ := name.(string)
		full, err := fullName(short)
		if err != nil {
			return err
		}
		names[i] = full
	}
	return nil
}

func fullName(name string) (string, error) {
	switch full := fullNames[name]; {
	case full != "":
		return full, nil
	case strings.Contains(name, "."):
		return name, nil
	case strings.HasSuffix(name, "-service"):
		return "io.containerd.service.v1." + name, nil
	}
	return "", fmt.Errorf("the plugin %q has no known name in version 2 of the file; write its full name, as `ctr "+
		"plugins ls` shows it (TYPE.ID)", name)
}
