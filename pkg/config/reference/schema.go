package reference

import (
	"encoding/json"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
)

// schema is a node of a JSON Schema.
type schema struct {
	Schema      string             `json:"$schema,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        types              `json:"type,omitempty"`
	Default     any                `json:"default,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	Items       *schema            `json:"items,omitempty"`
	Properties  map[string]*schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	Additional  *bool              `json:"additionalProperties,omitempty"`
}

// types are the JSON types of a value. null is one of each setting's, because
// a field without a value has its default.
type types []string

// kinds are the JSON types of each kind of value. YAML reads 1.36 as a number
// and 20 as an integer, where the program reads text.
var kinds = map[string]types{
	"string": {"string", "number"}, "bool": {"boolean"}, "int": {"integer"}, "duration": {"string", "integer"},
	"list": {"array", "string", "object"}, "mapping": {"object", "string"},
	"arguments": {"object", "string"}, "gates": {"object", "string"},
}

// Schema returns a JSON Schema of configuration files, for editors. It checks
// names and types; the program itself checks the values.
func Schema() ([]byte, error) {
	root := block("Configuration of kube-bootstrap")
	root.Schema = "http://json-schema.org/draft-07/schema#"
	root.Title, root.Required = config.Kind, []string{"apiVersion", "kind"}
	for name, value := range config.Header {
		root.Properties[name] = &schema{Type: types{"string"}, Enum: []string{value}}
	}
	for _, s := range config.Settings(config.Every) {
		if !s.Secret {
			root.add(s.Field, schemaOf(s))
		}
	}
	root.Properties[config.NodesField] = &schema{
		Description: "the nodes of a cluster, instead of masters and workers", Type: types{"array", "null"},
		Items: nodeSchema(),
	}
	data, err := json.MarshalIndent(root, "", "  ")
	return append(data, '\n'), err
}

func block(description string) *schema {
	return &schema{
		Description: description, Type: types{"object", "null"}, Properties: map[string]*schema{},
		Additional: new(bool),
	}
}

// add adds a field; one with a dot in its name goes into the block before it.
func (of *schema) add(field string, s *schema) {
	name, rest, nested := strings.Cut(field, ".")
	if !nested {
		of.Properties[name] = s
		return
	}
	if of.Properties[name] == nil {
		of.Properties[name] = block("")
	}
	of.Properties[name].add(rest, s)
}

func schemaOf(s config.Setting) *schema {
	kind := s.Kind()
	one := &schema{Description: s.Help, Type: append(kinds[kind], "null"), Enum: s.Values}
	if len(s.Values) > 0 {
		one.Type = nil // the values say it
	}
	if kind == "list" {
		one.Items = &schema{Type: types{"string"}}
	}
	switch {
	case s.Default == "":
	case kind == "bool", kind == "int":
		one.Default = json.RawMessage(s.Default)
	default:
		one.Default = s.Default
	}
	return one
}

func nodeSchema() *schema {
	node := block("a node, or several equal ones")
	node.Required = []string{"role"}
	text := types{"string", "number"}
	node.Properties["role"] = &schema{
		Enum: []string{config.AliasControlPlane, config.RoleControlPlane, config.RoleWorker},
	}
	node.Properties["name"] = &schema{
		Type: text, Description: "name of the node, or the beginning of the names of several",
	}
	node.Properties["count"] = &schema{Type: types{"integer"}, Description: "number of equal nodes"}
	node.Properties["hostImage"] = &schema{Enum: config.HostImages}
	node.Properties["dockerVersion"] = &schema{
		Type: text, Description: "version of Docker on the node, instead of hostImage",
	}
	node.Properties["address"] = &schema{
		Type: text, Description: "address of the machine, or its name in ~/.ssh/config",
	}
	node.Properties["ssh"] = block("what differs from the field ssh of the cluster")
	for _, name := range connection.NodeFields {
		s, _ := config.Find("ssh." + name)
		node.Properties["ssh"].Properties[name] = schemaOf(s)
	}
	for _, name := range config.NodeFields {
		if s, ok := config.NodeSetting(name); ok {
			node.Properties[name] = schemaOf(s)
		}
	}
	return node
}
