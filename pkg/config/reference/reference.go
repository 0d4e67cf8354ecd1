// Package reference documents the settings from their table: pages, a template of
// a file, explanations, a schema.
package reference

import (
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Markdown is docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<!-- Generated from pkg/config/table.go by "make docs"; do not edit. -->
# Configuration

Every setting can be given as a flag, as an environment variable or in a file. A flag wins over the environment, the environment over
the file, the file over the default. %[1]skube-bootstrap config view%[1]s shows every value and where it comes from;
%[1]skube-bootstrap config validate%[1]s lists every invalid value.

A file is named with %[1]s--config FILE%[1]s or KUBE_BOOTSTRAP_CONFIG (the commands %[1]scluster%[1]s and %[1]snode%[1]s also accept LOCAL_CLUSTER_CONF, and where none is named %[1]s~/.kubeadm-local-cluster/config.yaml%[1]s), and begins with:

%[1]s%[1]s%[1]syaml
apiVersion: %[2]s
kind: %[3]s
%[1]s%[1]s%[1]s

It is read strictly: an unknown field is an error that names the line. %[1]skube-bootstrap config init%[1]s prints one with every field.
A host that was set up keeps its settings, without secrets, in %[1]s%[4]s%[1]s; a verb that runs on it again starts from them.

Each flag also has the variable KUBE_BOOTSTRAP_<FLAG>, which wins over the old name, and for the commands %[1]scluster%[1]s and %[1]snode%[1]s K8S_DIND_<FLAG>. The
names in the third column are those of the docker-multinode scripts. A variable that begins with KUBE_BOOTSTRAP_ or K8S_DIND_ and belongs
to no flag is reported as a warning.

The last column says whether a later run may change the setting. New settings are kept once they have been applied: after a run that was
refused or has failed, the settings before it are still in force, and the same verb without the new ones puts the host back.

| field | flag | environment | default | meaning | may change |
|---|---|---|---|---|---|
`, "`", config.APIVersion, config.Kind, config.SavedPath)
	for _, s := range config.Settings(config.Every) {
		b.WriteString(row(s))
	}
	b.WriteString("\nFields with a dot are written as a block: \"registry: {address: registry.example.com:5000/k8s}\". The settings of the " +
		"registry, with the password, are sent to a host when it joins.\n")
	b.WriteString(componentsReference())
	b.WriteString(nodesReference)
	b.WriteString("\nThe settings that all hosts of a cluster must agree on are handed to a host when it joins: " + strings.Join(sharedFields(), ", ") + ".\n")
	return b.String()
}

func row(s config.Setting) string {
	help := s.Help
	if len(s.Values) > 0 {
		help += ": " + strings.Join(s.Values, ", ")
	}
	if s.Secret {
		help += "; never printed or saved"
	}
	help = strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(help)
	flag, env := "--"+s.Flag, s.Env
	if s.NoFlag {
		flag, env = "", config.EnvName(s.Flag)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", s.Field, flag, env, s.Default, help, s.Change)
}

func sharedFields() []string {
	var names []string
	for _, s := range config.Settings(config.Every) {
		if s.Shared {
			names = append(names, s.Field)
		}
	}
	return names
}

// Template is a file with every field. A field without a default is a comment.
func Template() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", config.APIVersion, config.Kind)
	for _, s := range config.Settings(config.Every) {
		if s.Secret || s.Group == config.GroupComponents || s.Group == config.GroupRegistry {
			continue
		}
		line := fmt.Sprintf("%s: %s", s.Field, s.Default)
		if s.Default == "" {
			line = fmt.Sprintf("# %s:", s.Field)
		}
		fmt.Fprintf(&b, "\n# %s\n%s\n", s.Help, line)
	}
	b.WriteString("\n# The private registry, if there is one:\n# registry:\n")
	for _, s := range config.Settings(config.Every) {
		if name, ok := strings.CutPrefix(s.Field, "registry."); ok && !s.Secret {
			fmt.Fprintf(&b, "#   %s: %s # %s\n", name, s.Default, s.Help)
		}
	}
	b.WriteString(componentsTemplate)
	b.WriteString(nodesTemplate)
	return []byte(b.String())
}
