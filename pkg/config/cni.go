package config

// Plugins that are known by name. Any other is the path or the URL of its
// manifest.
const (
	CNIBridge  = "bridge"
	CNIFlannel = "flannel"
	CNICalico  = "calico"
	CNIWeave   = "weave"
	CNINone    = "none"
)

func cniPlugin(s string) string {
	switch {
	case s == CNIBridge, s == CNIFlannel, s == CNICalico, s == CNIWeave, s == CNINone, IsManifest(s):
		return ""
	case IsURL(s):
		return wholeURL(s)
	}
	return "must be bridge, flannel, calico, weave, none, or the path or URL of a manifest"
}
