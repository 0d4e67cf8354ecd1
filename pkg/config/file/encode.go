package file

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Marshal writes the configuration of a host as a file that Load reads. It omits
// secrets, unsaved settings, and settings of clusters of containers.
func Marshal(c config.Config) ([]byte, error) {
	return encodeTree(tree(c, func(s config.Setting) (bool, string) {
		return !s.Secret && !s.Unsaved && s.Holds == "" &&
			s.Verbs&^(config.ClusterUp|config.Named|config.Engine|config.NodeAdd|config.Build|config.Sign) != 0, ""
	}))
}

// Shared encodes the settings that a host receives when it joins.
func Shared(c config.Config) []byte {
	data, err := encodeTree(tree(c, func(s config.Setting) (bool, string) { return s.Shared, "" }))
	if err != nil {
		panic(err) // a flat tree of words, written to memory
	}
	return data
}

// WithShared returns c with the settings that a control plane encoded by Shared. It
// ignores unknown fields, which a newer version may have added.
func WithShared(c config.Config, data []byte) (config.Config, error) {
	root, err := document(data)
	if err != nil {
		return c, fmt.Errorf("settings handed out by the control plane: %w", err)
	}
	if root != nil {
		root.Content = onlyShared(root, "")
	}
	if err := (decoder{path: "settings handed out by the control plane"}).decode(&c, root,
		config.Origins{}); err != nil {
		return c, err
	}
	return c.Complete(), nil
}

// onlyShared returns the shared settings of a block; "" is the whole document.
func onlyShared(root *yaml.Node, block string) []*yaml.Node {
	var kept []*yaml.Node
	for key, val := range entries(root) {
		s, known := config.Find(block + key.Value)
		_, isHeader := config.Header[key.Value]
		inner := val.Kind == yaml.MappingNode && isBlock(block+key.Value)
		if inner {
			val.Content = onlyShared(val, block+key.Value+".")
		}
		if inner || isHeader && block == "" || known && s.Shared {
			kept = append(kept, key, val)
		}
	}
	return kept
}

// tree returns the header and the settings that keep chooses, with its comments.
func tree(c config.Config, keep func(config.Setting) (bool, string)) *yaml.Node {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range []string{"apiVersion", "kind"} {
		root.Content = append(root.Content, word(name), word(config.Header[name]))
	}
	for _, s := range config.Settings(config.Every) {
		kept, comment := keep(s)
		if raw := s.Get(c); kept && raw != "" {
			node := encode(s, raw)
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

// put adds a field to a mapping. The part of a name before a dot is the block of the field.
func put(root *yaml.Node, name string, node *yaml.Node) {
	block, rest, nested := strings.Cut(name, ".")
	if !nested {
		root.Content = append(root.Content, word(name), node)
		return
	}
	for key, val := range entries(root) {
		if key.Value == block {
			put(val, rest, node)
			return
		}
	}
	inner := &yaml.Node{Kind: yaml.MappingNode}
	root.Content = append(root.Content, word(block), inner)
	put(inner, rest, node)
}

func encode(s config.Setting, raw string) *yaml.Node {
	kind := s.Kind()
	switch {
	case s.Secret:
		return word(s.Masked(raw))
	case kind == "bool", kind == "int":
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!" + kind, Value: raw}
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

// flow returns a node that is written on one line, for fields of another format.
func flow(raw string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &doc); err != nil || len(doc.Content) == 0 {
		return word(strings.TrimSpace(raw))
	}
	doc.Content[0].Style = yaml.FlowStyle
	return doc.Content[0]
}

// Value is one setting as `config view` shows it.
type Value struct {
	Field  string `json:"field"`
	Env    string `json:"-"` // the name in the old scripts, or our own
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Values lists the settings of verb with their origins, without secrets.
func Values(c config.Config, verb config.Verb, origins config.Origins) []Value {
	var all []Value
	for _, s := range config.Settings(verb) {
		names := s.EnvNames()
		v := Value{Field: s.Field, Env: names[len(names)-1], Value: s.Get(c), Origin: origins[s.Field].String()}
		if v.Value != "" {
			v.Value = s.Masked(v.Value)
		}
		if origins[s.Field].Source == config.FromDefault && s.Default == "" && v.Value != "" {
			v.Origin = "derived"
		}
		all = append(all, v)
	}
	if verb == config.Every {
		all = append(all, nodeValues(c.Nodes, origins)...)
	}
	return all
}

// View is Marshal with the origin of each value as a comment.
func View(c config.Config, origins config.Origins) ([]byte, error) {
	from := map[string]string{}
	for _, v := range Values(c, config.Every, origins) {
		from[v.Field] = v.Origin
	}
	root := tree(c, func(s config.Setting) (bool, string) {
		return len(c.Nodes) == 0 || s.Field != "masters" && s.Field != "workers", from[s.Field]
	})
	if len(c.Nodes) > 0 {
		root.Content = append(root.Content, word(config.NodesField), nodesTree(c.Nodes, origins))
	}
	return encodeTree(root)
}
