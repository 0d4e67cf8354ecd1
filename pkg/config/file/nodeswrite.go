package file

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// words is the entry of the file that means a node: names and values as they
// stand there.
func words(n config.Node) [][2]string {
	role := n.Role
	if role == config.RoleMaster {
		role = config.RoleControlPlane
	}
	all := [][2]string{{"role", role}, {"name", n.Name}, {"count", strconv.Itoa(n.Count)}, {"hostImage", n.HostImage}}
	for _, name := range config.NodeFields {
		if s, known := config.NodeSetting(name); known {
			all = append(all, [2]string{name, s.Get(n.Own)})
		}
	}
	return all
}

func nodesTree(nodes []config.Node, origins config.Origins) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, n := range nodes {
		entry := &yaml.Node{Kind: yaml.MappingNode}
		for _, w := range words(n) {
			if w[1] == "" {
				continue
			}
			val := encodeWord(w[0], w[1])
			val.LineComment = nodeOrigin(origins, i, w[0])
			entry.Content = append(entry.Content, word(w[0]), val)
		}
		list.Content = append(list.Content, entry)
	}
	return list
}

func encodeWord(name, raw string) *yaml.Node {
	if s, known := config.NodeSetting(name); known {
		return encode(s, raw)
	}
	if name == "count" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: raw}
	}
	return word(raw)
}

func nodeOrigin(origins config.Origins, i int, name string) string {
	of := fmt.Sprintf("%s[%d].", config.NodesField, i)
	if name == "hostImage" && origins[of+"dockerVersion"].Source != config.FromDefault {
		name = "dockerVersion"
	}
	return origins[of+name].String()
}

func nodeValues(nodes []config.Node, origins config.Origins) []Value {
	var all []Value
	for i, n := range nodes {
		for _, w := range words(n) {
			if w[1] != "" {
				all = append(all, Value{Field: fmt.Sprintf("%s[%d].%s", config.NodesField, i, w[0]), Value: w[1], Origin: nodeOrigin(origins, i, w[0])})
			}
		}
	}
	return all
}

// flow writes fields of somebody else's on one line.
func flow(raw string) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &doc); err != nil || len(doc.Content) == 0 {
		return word(strings.TrimSpace(raw))
	}
	doc.Content[0].Style = yaml.FlowStyle
	return doc.Content[0]
}
