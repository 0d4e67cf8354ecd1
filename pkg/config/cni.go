package config

import (
	"slices"
	"strings"
)

// Plugins that are known by name. Any other is the path or the URL of its
// manifest.
const (
	CNIBridge  = "bridge"
	CNIFlannel = "flannel"
	CNICalico  = "calico"
	CNINone    = "none"
)

// CNIPlugins are the plugins that are known by name.
var CNIPlugins = []string{CNIBridge, CNIFlannel, CNICalico, CNINone}

func cniPlugin(s string) string {
	switch {
	case slices.Contains(CNIPlugins, s), IsManifest(s):
		return ""
	case IsURL(s):
		return wholeURL(s)
	}
	return "must be " + strings.Join(CNIPlugins, ", ") + ", or the path or URL of a manifest"
}
