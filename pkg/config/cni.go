package config

// Plugins that are known by name. Any other is the path or the URL of its
// manifest.
const (
	CNIBridge  = "bridge"
	CNIFlannel = "flannel"
	CNINone    = "none"
)

func cniPlugin(s string) string {
	switch {
	case s == CNIBridge, s == CNIFlannel, s == CNINone, IsManifest(s):
		return ""
	case IsURL(s):
		return wholeURL(s)
	case s == "calico", s == "weave":
		return "has no manifest built in; give the path or the URL of the one that its makers publish"
	}
	return "must be bridge, flannel, none, or the path or URL of a manifest"
}
