package config

import (
	"net/url"
	"strings"
)

// Plugins that are known by name. Any other is the path or the URL of its
// manifest.
const (
	CNIBridge  = "bridge"
	CNIFlannel = "flannel"
	CNINone    = "none"
)

// IsURL reports whether a CNI plugin is named by where its manifest is
// downloaded.
func IsURL(plugin string) bool {
	return strings.HasPrefix(plugin, "https://") || strings.HasPrefix(plugin, "http://")
}

// IsManifest reports whether a CNI plugin is named by the path of its manifest.
func IsManifest(plugin string) bool {
	return !IsURL(plugin) && (strings.Contains(plugin, "/") || strings.HasSuffix(plugin, ".yaml") || strings.HasSuffix(plugin, ".yml"))
}

func cniPlugin(s string) string {
	switch {
	case s == CNIBridge, s == CNIFlannel, s == CNINone, IsManifest(s):
		return ""
	case IsURL(s):
		if u, err := url.Parse(s); err != nil || u.Host == "" {
			return "must be a whole URL, such as https://example.com/network.yaml"
		}
		return ""
	case s == "calico", s == "weave":
		return "has no manifest built in; give the path or the URL of the one that its makers publish"
	}
	return "must be bridge, flannel, none, or the path or URL of a manifest"
}
