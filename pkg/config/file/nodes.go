package file

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

func (d decoder) nodes(c *config.Config, val *yaml.Node, origins config.Origins) error {
	if val.Kind != yaml.SequenceNode {
		return d.wrong(val, config.NodesField,
			"must be a list, such as [{role: control-plane}, {role: worker, count: 2}]")
	}
	origins[config.NodesField] = d.origin(val)
	c.Nodes = nil
	var errs []error
	for i, entry := range val.Content {
		path := fmt.Sprintf("%s[%d]", config.NodesField, i)
		if entry.Kind != yaml.MappingNode {
			errs = append(errs, d.wrong(entry, path, "must be fields with values, such as {role: worker}"))
			continue
		}
		node := config.NodeEntry{Role: config.RoleWorker, Count: 1}
		errs = append(errs, d.node(&node, path, entry, origins))
		c.Nodes = append(c.Nodes, node)
	}
	return errors.Join(errs...)
}

func (d decoder) node(n *config.NodeEntry, path string, entry *yaml.Node, origins config.Origins) error {
	seen, err := d.fields(entry, path+".", func(key, val *yaml.Node) error {
		name := path + "." + key.Value
		origins[name] = d.origin(val)
		return d.nodeField(n, key, val, name, origins)
	})
	errs := []error{err}
	if seen["role"] == 0 {
		errs = append(errs, d.wrong(entry, path+".role", "missing; write control-plane or worker"))
	}
	if seen["hostImage"] > 0 && seen["dockerVersion"] > 0 {
		errs = append(errs, d.wrong(entry, path+".dockerVersion", "hostImage says it already; leave one of them out"))
	}
	return errors.Join(errs...)
}

func (d decoder) nodeField(n *config.NodeEntry, key, val *yaml.Node, path string, origins config.Origins) error {
	if s, ok := config.NodeSetting(key.Value); ok {
		if err := d.set(&n.Settings, s, path, val, origins); err != nil {
			return err
		}
		return d.must(val, path, s.Get(n.Settings), s.Must(n.Settings))
	}
	if key.Value == nodeSSH && val.Kind == yaml.MappingNode {
		return d.nodeSSH(n, val, path, origins)
	}
	switch known := slices.Contains(config.NodeFields, key.Value); {
	case !known && !d.strict:
		return nil
	case !known:
		return d.wrong(key, path, "unknown field"+spelling.DidYouMean(key.Value, config.NodeFields))
	case key.Value == nodeSSH:
		return d.wrong(val, path, "must be fields with values, such as {port: 2222}")
	case val.Kind != yaml.ScalarNode:
		return d.wrong(val, path, "must be a single value")
	}
	return d.must(val, path, val.Value, setWord(n, key.Value, val.Value))
}

// must is an error if there is something that the value must be.
func (d decoder) must(val *yaml.Node, path, raw, must string) error {
	if must == "" {
		return nil
	}
	return d.wrong(val, path, fmt.Sprintf("%q: %s", raw, must))
}

// setWord takes over a field with a single value, or says what it must be.
func setWord(n *config.NodeEntry, name, raw string) string {
	switch name {
	case "role":
		n.Role = strings.Replace(raw, config.AliasControlPlane, config.RoleControlPlane, 1)
		if n.Role != config.RoleControlPlane && n.Role != config.RoleWorker {
			return "must be control-plane or worker"
		}
	case "name":
		n.Name = raw
		if raw == "" {
			return "must be a name; leave the field out for a default one"
		}
		cluster, _ := config.Find("name")
		return cluster.Must(config.Config{Name: raw})
	case "address":
		n.Address = raw
		return connection.CheckAddress(raw)
	case "count":
		count, err := strconv.Atoi(raw)
		if n.Count = count; err != nil || count < 1 {
			return "must be a whole number, 1 or more"
		}
	case "dockerVersion":
		n.HostImage = "docker-" + strings.TrimPrefix(raw, "v")
		if !slices.Contains(config.HostImages, n.HostImage) {
			return "must be one of " + strings.Join(dockerVersions(), ", ")
		}
	case "hostImage":
		n.HostImage = raw
		if !slices.Contains(config.HostImages, raw) {
			return "must be one of " + strings.Join(config.HostImages, ", ")
		}
	}
	return ""
}

func dockerVersions() []string {
	var all []string
	for _, image := range config.HostImages {
		if version, ok := strings.CutPrefix(image, "docker-"); ok {
			all = append(all, version)
		}
	}
	return all
}

// words returns the names and values of a node in the file, without empty values.
func words(n config.NodeEntry) [][2]string {
	role := n.Role
	if role == config.RoleControlPlane {
		role = config.AliasControlPlane
	}
	all := [][2]string{
		{"role", role}, {"name", n.Name}, {"count", strconv.Itoa(n.Count)},
		{"address", n.Address}, {"hostImage", n.HostImage},
	}
	for _, name := range config.NodeFields {
		if s, known := config.NodeSetting(name); known {
			all = append(all, [2]string{name, s.Get(n.Settings)})
		}
	}
	return slices.DeleteFunc(all, func(w [2]string) bool { return w[1] == "" })
}

func nodesTree(nodes []config.NodeEntry, origins config.Origins) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, n := range nodes {
		entry := &yaml.Node{Kind: yaml.MappingNode}
		for _, w := range words(n) {
			val := encodeWord(w[0], w[1])
			val.LineComment = nodeOrigin(origins, i, w[0])
			entry.Content = append(entry.Content, word(w[0]), val)
		}
		for _, w := range sshWords(n) {
			val := encodeWord(w[0], w[1])
			val.LineComment = nodeOrigin(origins, i, w[0])
			put(entry, w[0], val)
		}
		list.Content = append(list.Content, entry)
	}
	return list
}

func encodeWord(name, raw string) *yaml.Node {
	if s, known := config.NodeSetting(name); known {
		return encode(s, raw)
	}
	if name == "count" || name == nodeSSH+".port" {
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

func nodeValues(nodes []config.NodeEntry, origins config.Origins) []Value {
	var all []Value
	for i, n := range nodes {
		for _, w := range append(words(n), sshWords(n)...) {
			all = append(all, Value{
				Field: fmt.Sprintf("%s[%d].%s", config.NodesField, i, w[0]), Value: w[1],
				Origin: nodeOrigin(origins, i, w[0]),
			})
		}
	}
	return all
}
