package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// The configuration files of the local clusters made by kubeadm had three
// sections and no header. What they said is understood as it was meant.

var oldSections = []string{"dind", "source", "cluster", "verbose"}

func isOld(root *yaml.Node) bool {
	old := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		if _, ours := header[root.Content[i].Value]; ours {
			return false
		}
		old = old || slices.Contains(oldSections, root.Content[i].Value)
	}
	return old
}

// oldFields says which setting a field of old became.
var oldFields = map[string]string{
	"dind.subnet": "dindSubnet", "source.kubernetesVersion": "kubernetesVersion", "source.k8sDir": "k8sDir",
	"cluster.numNodes": "workers", "cluster.noDedicated": "noDedicated", "cluster.apiServerPort": "apiServerPort",
	"cluster.cniPlugin": "cniPlugin", "cluster.addons": "addons",
}

// oldRemedies are the remedies for fields that were replaced or removed.
var oldRemedies = map[string]string{
	"source.buildKubeadm":  "there is no kubeadm; leave it out",
	"source.kubeadmUrl":    "there is no kubeadm; leave it out",
	"source.kubeadmSha1":   "there is no kubeadm; leave it out",
	"source.buildKubectl":  "kubectl comes with the images; leave it out",
	"source.kubectlUrl":    "kubectl comes with the images; leave it out",
	"source.kubectlSha1":   "kubectl comes with the images; leave it out",
	"source.hyperkubeUrl":  "images come in a bundle (--bundle), which `kube-bootstrap offline build` makes",
	"source.hyperkubeSha1": "images come in a bundle (--bundle), which `kube-bootstrap offline build` makes",
}

// OldFlag returns the replacement for a flag of the previous tools.
func OldFlag(flag string) (remedy string, known bool) {
	switch flag {
	case "nodes":
		return "it counted the control plane too; use --workers, which is one less", true
	case "v":
		return "use --progress plain to see more", true
	case "build-hyperkube":
		return "images are built from source where no bundle is given and none can be pulled; leave it out", true
	}
	for field, remedy := range oldRemedies {
		if oldFlag(field) == flag {
			return remedy, true
		}
	}
	return "", false
}

// oldFlag returns the flag of a field: build-kubeadm for source.buildKubeadm.
func oldFlag(field string) string {
	var flag strings.Builder
	for _, letter := range field[strings.Index(field, ".")+1:] {
		if unicode.IsUpper(letter) {
			flag.WriteByte('-')
		}
		flag.WriteRune(unicode.ToLower(letter))
	}
	return flag.String()
}

// OldClusterVariables returns an error that lists the set variables of these
// flags.
func OldClusterVariables(env func(string) string) error {
	var errs []error
	for _, field := range slices.Sorted(maps.Keys(oldRemedies)) {
		name := oldClusterName(field)
		if value := env(name); value != "" && value != "false" {
			errs = append(errs, fmt.Errorf("%s=%s is no longer read: %s; unset it", name, value, oldRemedies[field]))
		}
	}
	return errors.Join(errs...)
}

// OldClusterNames returns the names of these variables.
func OldClusterNames() (names []string) {
	for field := range oldRemedies {
		names = append(names, oldClusterName(field))
	}
	return names
}

func oldClusterName(field string) string {
	return "K8S_DIND_" + strings.TrimPrefix(EnvName(oldFlag(field)), ownPrefix)
}

func (d decoder) old(c *Config, root *yaml.Node, origins Origins) error {
	var errs []error
	for i := 0; i+1 < len(root.Content); i += 2 {
		section, val := root.Content[i], root.Content[i+1]
		if section.Value == "verbose" {
			continue // the verbosity is not a setting of the cluster
		}
		if !slices.Contains(oldSections, section.Value) {
			errs = append(errs, d.wrong(section, section.Value, "unknown section; there are "+strings.Join(oldSections, ", ")))
			continue
		}
		if isNull(val) {
			continue // all lines of the block are comments
		}
		if val.Kind != yaml.MappingNode {
			errs = append(errs, d.wrong(val, section.Value, "must be fields with values"))
			continue
		}
		for j := 0; j+1 < len(val.Content); j += 2 {
			errs = append(errs, d.oldField(c, section.Value+"."+val.Content[j].Value, val.Content[j], val.Content[j+1], origins))
		}
	}
	return errors.Join(errs...)
}

func (d decoder) oldField(c *Config, path string, key, val *yaml.Node, origins Origins) error {
	if remedy, known := oldRemedies[path]; known {
		if val.Value == "" || val.Value == "false" {
			return nil
		}
		return d.wrong(key, path, "is no more; "+remedy)
	}
	if path == "source.buildHyperkube" {
		return nil // images are always built from source here
	}
	s, known := byField(oldFields[path])
	if !known {
		return d.wrong(key, path, "unknown field"+oldSuggestion(path))
	}
	if err := d.set(c, s, s.Field, val, origins); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func oldSuggestion(path string) string {
	var known []string
	for name, field := range oldFields {
		if _, there := byField(field); there {
			known = append(known, name)
		}
	}
	slices.Sort(known)
	if best := Nearest(path, known); best != "" {
		return ", did you mean " + best + "?"
	}
	return "; there are " + strings.Join(known, ", ")
}

// oldVariables are variables of the previous scripts whose choice no longer
// exists as a setting.
var oldVariables = []struct{ name, remedy string }{
	{"USE_CNI", "use --cni-plugin flannel for a network of pods alone"},
	{"USE_CONTAINERIZED", "the kubelet always runs in a container"},
	{"PAUSE_VERSION", "the pause image goes with the Kubernetes version"},
}

// OldVariables returns an error that lists the variables of the previous
// scripts that are set but no longer read: ignoring them would create a
// different cluster than the user expects.
func OldVariables(env func(string) string) error {
	var errs []error
	for _, v := range oldVariables {
		if value := env(v.name); value != "" && value != "false" {
			errs = append(errs, fmt.Errorf("%s=%s is no longer read: %s; unset it", v.name, value, v.remedy))
		}
	}
	return errors.Join(errs...)
}
