// Package reference documents the settings: page, template, explanations, schema.
package reference

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
)

//go:embed configuration.md.tmpl
var page string

var pageTemplate = template.Must(template.New("configuration.md").Parse(page))

// Markdown is docs/configuration.md.
func Markdown() string {
	var rows, shared []string
	for _, s := range config.Settings(config.Every) {
		rows = append(rows, row(s))
		if s.Shared {
			shared = append(shared, s.Field)
		}
	}
	var b strings.Builder
	err := pageTemplate.Execute(&b, map[string]any{
		"APIVersion": config.APIVersion, "Kind": config.Kind, "SavedPath": config.SavedPath, "Rows": rows,
		"Minors": strings.Join(catalog.Listed(), ", "), "Shared": strings.Join(shared, ", "),
	})
	if err != nil {
		panic(err) // a fixed template, written to memory
	}
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

// further is the end of Template: components, access, nodes.
//
//go:embed init.yaml
var further string

// omitted are the settings that Template leaves to its end, which has them with an explanation.
var omitted = []config.FlagGroup{config.GroupComponents, config.GroupRegistry, config.GroupMachines}

// Template is a file with every field. A field without a default is a comment.
func Template() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: %s\nkind: %s\n", config.APIVersion, config.Kind)
	for _, s := range config.Settings(config.Every) {
		if s.Secret || slices.Contains(omitted, s.Group) {
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
	b.WriteString(further)
	return []byte(b.String())
}

// MachinesTemplate is a file for a cluster of machines.
//
//go:embed machines.yaml
var MachinesTemplate string

// Explanation is everything that the table says about a setting.
type Explanation struct {
	Field     string   `json:"field"`
	Type      string   `json:"type"`
	Meaning   string   `json:"meaning"`
	Default   string   `json:"default,omitempty"`
	Values    []string `json:"values,omitempty"`
	Flag      string   `json:"flag,omitempty"`
	Variables []string `json:"variables"`
	MayChange string   `json:"mayChange"`
	Shared    bool     `json:"shared"` // the same on all hosts of a cluster
	Secret    bool     `json:"secret"` // never printed or saved
}

// Explain returns the explanations of a field, of a block, or, for "", of all fields.
func Explain(name string) ([]Explanation, error) {
	var all []Explanation
	if entry, ofNodes := strings.CutPrefix(name, config.NodesField); ofNodes {
		all = explainNodes(strings.TrimLeft(entry, ".[]"))
	}
	for _, s := range config.Settings(config.Every) {
		if name == "" || name == s.Field || name == s.Flag || slices.Contains(s.EnvNames(), name) ||
			strings.HasPrefix(s.Field, name+".") {
			all = append(all, explain(s))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q is no field of a configuration file%s", name, config.Suggestion(name))
	}
	return all, nil
}

func explain(s config.Setting) Explanation {
	e := Explanation{
		Field: s.Field, Type: s.Kind(), Meaning: s.Help, Default: s.Default, Values: s.Values,
		Flag: "--" + s.Flag, Variables: s.EnvNames(), MayChange: string(s.Change), Shared: s.Shared, Secret: s.Secret,
	}
	if s.NoFlag {
		e.Flag = ""
	}
	return e
}

// nodeTexts explain the fields of an entry of nodes that are no settings of a host.
var nodeTexts = []Explanation{
	{Field: "role", Type: "string", Meaning: "role of the node",
		Values: []string{config.AliasControlPlane, config.RoleControlPlane, config.RoleWorker}},
	{Field: "name", Type: "string", Meaning: "name of the node within the cluster (empty: its role and a number)"},
	{Field: "count", Type: "int", Meaning: "how many nodes the entry stands for", Default: "1"},
	{Field: "address", Type: "string",
		Meaning: "address of the machine, or its name in ~/.ssh/config (empty: the node is a container)"},
	{Field: "ssh", Type: "mapping",
		Meaning: "what differs from the field ssh of the cluster: " + strings.Join(connection.NodeFields, ", ")},
	{Field: "hostImage", Type: "string", Meaning: "what the node is made of (empty: as the cluster)",
		Values: config.HostImages},
}

// explainNodes explains one field of an entry of nodes; for "", all fields.
func explainNodes(field string) (all []Explanation) {
	for _, e := range nodeTexts {
		e.MayChange = string(config.Never)
		if e.Field == "count" {
			e.MayChange = string(config.Freely)
		}
		all = append(all, e)
	}
	for _, name := range config.NodeFields {
		if s, found := config.NodeSetting(name); found {
			e := explain(s)
			e.Field = name
			all = append(all, e)
		}
	}
	for i := range all {
		all[i].Field = config.NodesField + "[]." + all[i].Field
	}
	return slices.DeleteFunc(all,
		func(e Explanation) bool { return field != "" && e.Field != config.NodesField+"[]."+field })
}

// Fields returns the names of all fields.
func Fields() []string {
	all := []string{config.NodesField}
	for _, s := range config.Settings(config.Every) {
		all = append(all, s.Field)
	}
	return all
}
