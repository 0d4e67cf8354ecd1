// Package previous has the names that settings had in the previous tools: fields
// of files, flags and variables, and the remedies for settings that no longer exist.
package previous

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// Sections are the sections of a file of a local cluster of kubeadm, which has no header.
var Sections = []string{"dind", "source", "cluster", "verbose"}

// fields has the name of the setting for each field of a section.
var fields = map[string]string{
	"dind.subnet": "dindSubnet", "source.kubernetesVersion": "kubernetesVersion", "source.k8sDir": "k8sDir",
	"cluster.numNodes": "workers", "cluster.noDedicated": "noDedicated", "cluster.apiServerPort": "apiServerPort",
	"cluster.cniPlugin": "cniPlugin", "cluster.addons": "addons",
}

// Remedies has the remedies for fields that were replaced or removed.
var Remedies = map[string]string{
	"source.buildKubeadm":  "there is no kubeadm; leave it out",
	"source.kubeadmUrl":    "there is no kubeadm; leave it out",
	"source.kubeadmSha1":   "there is no kubeadm; leave it out",
	"source.buildKubectl":  "kubectl comes with the images; leave it out",
	"source.kubectlUrl":    "kubectl comes with the images; leave it out",
	"source.kubectlSha1":   "kubectl comes with the images; leave it out",
	"source.hyperkubeUrl":  "images come in a bundle (--bundle), which `kube-bootstrap offline build` makes",
	"source.hyperkubeSha1": "images come in a bundle (--bundle), which `kube-bootstrap offline build` makes",
}

// Flag returns the replacement for a flag of the previous tools.
func Flag(flag string) (remedy string, known bool) {
	switch flag {
	case "nodes":
		return "it counted the control plane too; use --workers, which is one less", true
	case "v":
		return "use --verbose", true
	case "build-hyperkube":
		return "images are built from source where no bundle is given and none can be pulled; leave it out", true
	}
	for field, remedy := range Remedies {
		if flagOf(field) == flag {
			return remedy, true
		}
	}
	return "", false
}

// flagOf returns the flag of a field: build-kubeadm for source.buildKubeadm.
func flagOf(field string) string {
	var flag strings.Builder
	for _, letter := range field[strings.Index(field, ".")+1:] {
		if unicode.IsUpper(letter) {
			flag.WriteByte('-')
		}
		flag.WriteRune(unicode.ToLower(letter))
	}
	return flag.String()
}

// ClusterVariables returns the remedies for the variables of these flags.
func ClusterVariables() map[string]string {
	all := map[string]string{}
	for field, remedy := range Remedies {
		all["K8S_DIND_"+strings.TrimPrefix(config.EnvName(flagOf(field)), config.EnvPrefix)] = remedy
	}
	return all
}

// Setting returns the setting that replaces a field.
func Setting(path string) (config.Setting, bool) { return config.Find(fields[path]) }

// Suggestion names the field that was probably meant, or all fields.
func Suggestion(path string) string {
	return spelling.DidYouMean(path, slices.Sorted(maps.Keys(fields)))
}

// Variables has the remedies for variables of the previous scripts that are no
// setting any more.
var Variables = map[string]string{
	"USE_CNI":           "use --cni-plugin flannel for a network of pods alone",
	"USE_CONTAINERIZED": "the kubelet always runs in a container",
	"PAUSE_VERSION":     "the pause image goes with the Kubernetes version",
}

// Unread returns an error that lists the variables with remedies that are set
// but no longer read: ignoring them would create a different cluster than the
// user expects.
func Unread(env func(string) string, remedies map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(remedies)) {
		if value := env(name); value != "" && value != "false" {
			errs = append(errs, fmt.Errorf("%s=%s is no longer read: %s; unset it", name, value, remedies[name]))
		}
	}
	return errors.Join(errs...)
}
