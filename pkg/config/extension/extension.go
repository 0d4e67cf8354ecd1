// Package extension has the names of the addons and of the network plugins, and distinguishes them from paths
// and URLs of manifests.
package extension

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// IsURL reports whether a manifest is named by where it is downloaded.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// IsPath reports whether a manifest is named by its path.
func IsPath(name string) bool {
	return !IsURL(name) && (strings.Contains(name, "/") || strings.HasSuffix(name, ".yaml") ||
		strings.HasSuffix(name, ".yml"))
}

// wholeURL returns what is wrong with a URL; "" if nothing is.
func wholeURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "":
		return "must be a whole URL, such as https://example.com/manifest.yaml"
	case u.Scheme == "http" && !strings.HasPrefix(u.Fragment, "sha256:"):
		return "must begin with https://, or end in #sha256: and the sum of the manifest, as anybody on the way " +
			"could change it"
	}
	return ""
}

// The addons with a name.
const (
	AddonMetricsServer = "metrics-server"
	AddonLocalPath     = "local-path"
	AddonMetalLB       = "metallb"
	AddonDashboard     = "dashboard"
)

// ContainedAddons have their manifests and images in kube-bootstrap.
var ContainedAddons = []string{AddonMetricsServer, AddonLocalPath, AddonMetalLB}

// NewClusterAddons are the default of a new cluster of containers.
var NewClusterAddons = []string{AddonMetricsServer, AddonLocalPath}

// NoAddons is the value of the setting for a cluster without addons.
const NoAddons = "none"

// AddonNames are the addons with a name.
func AddonNames() []string { return append(slices.Clone(ContainedAddons), AddonDashboard) }

// CheckAddons returns what is wrong with the setting addons; "" if nothing is.
func CheckAddons(names []string) string {
	for _, name := range names {
		switch {
		case slices.Contains(AddonNames(), name), IsPath(name):
		case IsURL(name):
			if wrong := wholeURL(name); wrong != "" {
				return wrong
			}
		default:
			return "must be none, " + strings.Join(AddonNames(), ", ") + ", or the path or URL of a manifest; " +
				strconv.Quote(name) + " is not"
		}
	}
	return ""
}

// Plugins with a name. Any other is the path or the URL of its manifest.
const (
	CNIBridge  = "bridge"
	CNIFlannel = "flannel"
	CNICalico  = "calico"
	CNINone    = "none"
)

// CNIPlugins are the plugins that are known by name.
var CNIPlugins = []string{CNIBridge, CNIFlannel, CNICalico, CNINone}

// CheckCNIPlugin returns what is wrong with the setting cniPlugin; "" if nothing is.
func CheckCNIPlugin(s string) string {
	switch {
	case slices.Contains(CNIPlugins, s), IsPath(s):
		return ""
	case IsURL(s):
		return wholeURL(s)
	}
	return "must be " + strings.Join(CNIPlugins, ", ") + ", or the path or URL of a manifest"
}
