package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const hidden = "(hidden)"

// masked is raw, or a word that stands for a secret.
func (s Setting) masked(raw string) string {
	if s.Secret {
		return hidden
	}
	return raw
}

// Value is one setting as `config view` shows it.
type Value struct {
	Field  string `json:"field"`
	Env    string `json:"-"` // the name in the old scripts, or our own
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Values lists the settings that verb takes with their origins. Secrets are
// hidden.
func (c Config) Values(verb Verb, origins Origins) []Value {
	var all []Value
	for _, s := range Settings(verb) {
		names := s.EnvNames()
		v := Value{Field: s.Field, Env: names[len(names)-1], Value: s.at(&c).get(), Origin: origins[s.Field].String()}
		if s.Secret && v.Value != "" {
			v.Value = hidden
		}
		if origins[s.Field].Source == FromDefault && s.Default == "" && v.Value != "" {
			v.Origin = "derived"
		}
		all = append(all, v)
	}
	if verb == Every {
		all = append(all, c.nodeValues(origins)...)
	}
	return all
}

// Marshal writes the configuration of a host as a file that Load reads. It omits
// secrets, settings for one run, and settings of clusters of containers.
func (c Config) Marshal() ([]byte, error) {
	return encodeTree(c.tree(func(s Setting) (bool, string) {
		return !s.Secret && !s.Once && s.Holds == "" && s.Verbs&^(ClusterUp|Named|Engine|OneNode|Build|Sign) != 0, ""
	}))
}

// View is Marshal with the origin of each value as a comment.
func (c Config) View(origins Origins) ([]byte, error) {
	from := map[string]string{}
	for _, v := range c.Values(Every, origins) {
		from[v.Field] = v.Origin
	}
	root := c.tree(func(s Setting) (bool, string) {
		return len(c.Nodes) == 0 || s.Field != "masters" && s.Field != "workers", from[s.Field]
	})
	if len(c.Nodes) > 0 {
		root.Content = append(root.Content, word(nodesField), c.nodesTree(origins))
	}
	return encodeTree(root)
}

// Shared writes what is the same on every host of a cluster, to be handed to
// a host that joins.
func (c Config) Shared() []byte {
	data, err := encodeTree(c.tree(func(s Setting) (bool, string) { return s.Shared, "" }))
	if err != nil {
		panic(err) // a flat tree of words, written to memory
	}
	return data
}

// WithShared takes over what a control-plane host handed out with Shared.
// Fields of a newer version, which this one cannot know, are passed over.
func (c Config) WithShared(data []byte) (Config, error) {
	root, err := document(data)
	if err != nil {
		return c, fmt.Errorf("settings handed out by the control plane: %w", err)
	}
	if root != nil {
		root.Content = onlyShared(root.Content, "")
	}
	if err := (decoder{path: "settings handed out by the control plane"}).decode(&c, root, Origins{}); err != nil {
		return c, err
	}
	return c.complete(), nil
}

// onlyShared returns the shared settings among the fields of a block; "" is the
// whole document.
func onlyShared(pairs []*yaml.Node, block string) []*yaml.Node {
	var kept []*yaml.Node
	for i := 0; i+1 < len(pairs); i += 2 {
		key, val := pairs[i], pairs[i+1]
		s, known := byField(block + key.Value)
		_, isHeader := header[key.Value]
		inner := val.Kind == yaml.MappingNode && isBlock(block+key.Value)
		if inner {
			val.Content = onlyShared(val.Content, block+key.Value+".")
		}
		if inner || isHeader && block == "" || known && s.Shared {
			kept = append(kept, key, val)
		}
	}
	return kept
}

// tree is the header and the non-empty settings that keep chooses, each with
// the comment it returns.
func (c Config) tree(keep func(Setting) (bool, string)) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range []string{"apiVersion", "kind"} {
		root.Content = append(root.Content, word(name), word(header[name]))
	}
	for _, s := range settings {
		v := s.at(&c)
		kept, comment := keep(s)
		if raw := v.get(); kept && raw != "" {
			node := encode(s, v.kind, raw)
			node.LineComment = comment
			put(root, s.Field, node)
		}
	}
	return root
}

func encodeTree(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return out.Bytes(), nil
}

// put adds a field to a mapping; one with a dot goes into the block before it.
func put(root *yaml.Node, name string, node *yaml.Node) {
	block, rest, nested := strings.Cut(name, ".")
	if !nested {
		root.Content = append(root.Content, word(name), node)
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == block {
			put(root.Content[i+1], rest, node)
			return
		}
	}
	inner := &yaml.Node{Kind: yaml.MappingNode}
	root.Content = append(root.Content, word(block), inner)
	put(inner, rest, node)
}

func encode(s Setting, kind, raw string) *yaml.Node {
	switch {
	case s.Secret:
		return word(hidden)
	case kind == "bool":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: raw}
	case kind == "int":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: raw}
	case kind == "mapping", kind == "arguments", kind == "gates":
		return flow(raw)
	case kind == "list":
		node := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, w := range strings.Split(raw, ",") {
			node.Content = append(node.Content, word(w))
		}
		return node
	}
	node := word(raw)
	if slices.Contains([]string{"no", "yes", "on", "off"}, raw) {
		node.Style = yaml.DoubleQuotedStyle // older readers take them for true and false
	}
	return node
}

func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
