// Package pluginname translates the short names of plugins in version 1 of containerd's configuration file into
// those of version 2.
package pluginname

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

// ReplaceIn replaces the names in a list of plugins. Its error is that of Full.
func ReplaceIn(list any) error {
	names, _ := list.([]any)
	for i, name := range names {
		short, _ := name.(string)
		full, err := Full(short)
		if err != nil {
			return err
		}
		names[i] = full
	}
	return nil
}

// Full returns the name of a plugin in version 2 of the file. A name without one is an error.
func Full(name string) (string, error) {
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
