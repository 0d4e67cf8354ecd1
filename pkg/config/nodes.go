package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// nodesField is the one field of a file that is no single setting.
const nodesField = "nodes"

// RoleControlPlane is what Kubernetes calls a master; in nodes both are known.
const RoleControlPlane = "control-plane"

// Node is one entry of nodes: what sets a node, or several equal ones, apart.
type Node struct {
	Role      string // RoleMaster or RoleWorker
	Name      string // empty: by role and number
	Count     int
	HostImage string // empty: that of the cluster

	// Own holds the settings of the node itself, of nodeSettings and of
	// nodeFields; all others are zero.
	Own Config
}

// nodeFields are the names of nodeSettings in an entry of nodes.
var nodeFields = map[string]string{
	"labels": "nodeLabels", "taints": "nodeTaints", "cpus": "nodeCPUs", "memory": "nodeMemory", "disk": "nodeDisk", "kubelet": "kubeletConfig",
	"ports": "nodePorts", "mounts": "nodeMounts",
}

var nodeFieldNames = []string{"role", "name", "count", "labels", "taints", "cpus", "memory", "disk", "hostImage", "dockerVersion", "kubelet", "ports", "mounts"}

// Args returns the node's own settings as flags of its host verb. It includes
// empty values, because they reset an earlier value.
func (n Node) Args() []string {
	var args []string
	for _, s := range nodeSettings {
		args = append(args, "--"+s.Flag+"="+s.at(&n.Own).get())
	}
	return args
}

func (d decoder) nodes(c *Config, val *yaml.Node, origins Origins) error {
	if val.Kind != yaml.SequenceNode {
		return d.wrong(val, nodesField, "must be a list, such as [{role: control-plane}, {role: worker, count: 2}]")
	}
	origins[nodesField] = d.origin(val)
	c.Nodes = nil
	var errs []error
	for i, entry := range val.Content {
		path := fmt.Sprintf("%s[%d]", nodesField, i)
		if entry.Kind != yaml.MappingNode {
			errs = append(errs, d.wrong(entry, path, "must be fields with values, such as {role: worker}"))
			continue
		}
		node := Node{Role: RoleWorker, Count: 1}
		errs = append(errs, d.node(&node, path, entry, origins))
		c.Nodes = append(c.Nodes, node)
	}
	return errors.Join(errs...)
}

func (d decoder) node(n *Node, path string, entry *yaml.Node, origins Origins) error {
	var errs []error
	seen := map[string]int{}
	for i := 0; i+1 < len(entry.Content); i += 2 {
		key, val := entry.Content[i], entry.Content[i+1]
		name := path + "." + key.Value
		if line, twice := seen[key.Value]; twice {
			errs = append(errs, d.wrong(key, name, fmt.Sprintf("already said on line %d", line)))
			continue
		}
		seen[key.Value] = key.Line
		origins[name] = d.origin(val)
		errs = append(errs, d.nodeField(n, key, val, name, origins))
	}
	if seen["role"] == 0 {
		errs = append(errs, d.wrong(entry, path+".role", "missing; write control-plane or worker"))
	}
	if seen["hostImage"] > 0 && seen["dockerVersion"] > 0 {
		errs = append(errs, d.wrong(entry, path+".dockerVersion", "hostImage says it already; leave one of them out"))
	}
	return errors.Join(errs...)
}

func (d decoder) nodeField(n *Node, key, val *yaml.Node, path string, origins Origins) error {
	if field, ok := nodeFields[key.Value]; ok {
		s, _ := byField(field)
		err := d.set(&n.Own, s, path, val, origins)
		if err != nil {
			return err
		}
		if raw := s.at(&n.Own).get(); raw != "" && s.check != nil {
			return d.must(val, path, raw, s.check(raw))
		}
		return nil
	}
	if !slices.Contains(nodeFieldNames, key.Value) {
		if !d.strict {
			return nil
		}
		return d.wrong(key, path, "unknown field"+nodeSuggestion(key.Value))
	}
	if val.Kind != yaml.ScalarNode {
		return d.wrong(val, path, "must be a single value")
	}
	return d.must(val, path, val.Value, n.word(key.Value, val.Value))
}

// must is an error if there is something that the value must be.
func (d decoder) must(val *yaml.Node, path, raw, must string) error {
	if must == "" {
		return nil
	}
	return d.wrong(val, path, fmt.Sprintf("%q: %s", raw, must))
}

func nodeSuggestion(name string) string {
	if best := Nearest(name, nodeFieldNames); best != "" {
		return ", did you mean " + best + "?"
	}
	return "; there are " + strings.Join(nodeFieldNames, ", ")
}

// word takes over a field with a single value, or says what it must be.
func (n *Node) word(name, raw string) string {
	switch name {
	case "role":
		n.Role = strings.Replace(raw, RoleControlPlane, RoleMaster, 1)
		if n.Role != RoleMaster && n.Role != RoleWorker {
			return "must be control-plane or worker"
		}
	case "name":
		n.Name = raw
		return clusterName(raw)
	case "count":
		count, err := strconv.Atoi(raw)
		if n.Count = count; err != nil || count < 1 {
			return "must be a whole number, 1 or more"
		}
	case "dockerVersion":
		n.HostImage = "docker-" + strings.TrimPrefix(raw, "v")
		if !slices.Contains(HostImages, n.HostImage) {
			return "must be one of " + strings.Join(dockerVersions(), ", ")
		}
	case "hostImage":
		n.HostImage = raw
		if !slices.Contains(HostImages, raw) {
			return "must be one of " + strings.Join(HostImages, ", ")
		}
	}
	return ""
}

func dockerVersions() []string {
	var all []string
	for _, image := range HostImages {
		if version, ok := strings.CutPrefix(image, "docker-"); ok {
			all = append(all, version)
		}
	}
	return all
}

// togetherNodes checks what the nodes mean for one another and for masters and
// workers.
func (c Config) togetherNodes(origins Origins) field.ErrorList {
	if len(c.Nodes) == 0 {
		return nil
	}
	var errs field.ErrorList
	for name, value := range map[string]int{"masters": c.Masters, "workers": c.Workers} {
		if origins[name].Source != FromDefault {
			errs = append(errs, field.Invalid(field.NewPath(name), value,
				fmt.Sprintf("nodes (%s) says which nodes there are; leave %s (%s) out, or nodes", origins[nodesField].Where, name, origins[name].Where)))
		}
	}
	if !slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Role == RoleMaster }) {
		errs = append(errs, field.Required(field.NewPath(nodesField), "one with role control-plane ("+origins[nodesField].Where+")"))
	}
	named := map[string]int{}
	for i, n := range c.Nodes {
		if other, twice := named[n.Name]; twice && n.Name != "" {
			at := field.NewPath(nodesField).Index(i).Child("name")
			errs = append(errs, field.Invalid(at, n.Name, fmt.Sprintf("is that of nodes[%d] (%s); choose another", other, origins[at.String()].Where)))
		}
		named[n.Name] = i
	}
	return errs
}
