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
// secrets, settings for one run, and settings of clusters of containers.
func Marshal(c config.Config) ([]byte, error) {
	return encodeTree(tree(c, func(s config.Setting) (bool, string) {
		return !s.Secret && !s.Once && s.Holds == "" && s.Verbs&^(config.ClusterUp|config.Named|config.Engine|config.OneNode|config.Build|config.Sign) != 0, ""
	}))
}

// Shared encodes the settings that all hosts of a cluster share. A host that joins
// receives them.
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
	if err := (decoder{path: "settings handed out by the control plane"}).decode(&c, root, config.Origins{}); err != nil {
		return c, err
	}
	return c.Complete(), nil
}

// onlyShared returns the shared settings among the fields of a block; "" is the
// whole document.
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

// tree returns the header and the non-empty settings that keep chooses, each with
// the comment it returns.
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

// put adds a field to a mapping; one with a dot goes into the block before it.
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

// flow writes fields of somebody else's on one line.
func flow(raw string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &doc); err != nil || len(doc.Content) == 0 {
		return word(strings.TrimSpace(raw))
	}
	doc.Content[0].Style = yaml.FlowStyle
	return doc.Content[0]
}
