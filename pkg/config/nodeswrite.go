package config

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// nodesTemplate ends the file that `config init` prints.
const nodesTemplate = `
# Nodes that are not all alike, instead of masters and workers; for "cluster" alone.
# nodes:
# - role: control-plane
# - role: worker
#   count: 2
#   name: small                # the nodes are called NAME-small-1, NAME-small-2
#   labels: {disk: ssd}
#   taints: ["dedicated=db:NoSchedule"]
#   cpus: 1.5
#   memory: 2Gi
#   disk: 10Gi
#   dockerVersion: "26.1"      # or hostImage: docker-26.1
#   kubelet: {maxPods: 50}     # fields of its KubeletConfiguration
# - role: worker
#   name: edge
#   ports: ["8080:30080"]      # 127.0.0.1:8080 of this machine leads to port 30080 of the node
#   mounts: ["/srv/data:/data:ro"]
`

// nodesReference is the part of docs/configuration.md about nodes.
const nodesReference = `
## Nodes

A cluster of containers is described by masters and workers, or, where its nodes are not all alike, by a list:

` + "```yaml" + `
apiVersion: kube-bootstrap.dev/v1alpha1
kind: Cluster
name: dev
nodes:
- role: control-plane
- role: worker
  count: 2
  name: small
  labels: {disk: ssd}
  taints: ["dedicated=db:NoSchedule"]
  cpus: 1.5
  memory: 2Gi
  disk: 10Gi
  dockerVersion: "26.1"
  kubelet: {maxPods: 50}
- role: worker
  name: edge
  ports: ["8080:30080"]
  mounts: ["/srv/data:/data:ro"]
` + "```" + `

| field | meaning |
|---|---|
| role | control-plane or worker; the one field that must be there |
| name | called CLUSTER-name, and with a count CLUSTER-name-1, CLUSTER-name-2; without it CLUSTER-master-1, CLUSTER-worker-1 |
| count | how many of them; 1 |
| labels, taints, kubelet | nodeLabels, nodeTaints and kubeletConfig of these nodes |
| cpus, memory | what the node has, and what its pods may use |
| disk | what its pods may use for what they do not keep |
| ports | ports of the engine's machine that lead to the node: [ADDRESS:]PORT:NODEPORT[/udp]; without an address 127.0.0.1. A node has the ports that it was created with |
| mounts | directories of the engine's machine on the node: PATH:NODEPATH[:ro]. A node has the mounts that it was created with |
| hostImage, dockerVersion | what the node is made of, or the version of Docker in it |
`

// words is the entry of the file that means n: names and values as they
// stand there.
func (n Node) words() [][2]string {
	role := n.Role
	if role == RoleMaster {
		role = RoleControlPlane
	}
	all := [][2]string{{"role", role}, {"name", n.Name}, {"count", strconv.Itoa(n.Count)}, {"hostImage", n.HostImage}}
	for _, name := range nodeFieldNames {
		if s, known := byField(nodeFields[name]); known {
			all = append(all, [2]string{name, s.at(&n.Own).get()})
		}
	}
	return all
}

func (c Config) nodesTree(origins Origins) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for i, n := range c.Nodes {
		entry := &yaml.Node{Kind: yaml.MappingNode}
		for _, w := range n.words() {
			if w[1] == "" {
				continue
			}
			val := n.encode(w[0], w[1])
			val.LineComment = nodeOrigin(origins, i, w[0])
			entry.Content = append(entry.Content, word(w[0]), val)
		}
		list.Content = append(list.Content, entry)
	}
	return list
}

func (n Node) encode(name, raw string) *yaml.Node {
	if s, known := byField(nodeFields[name]); known {
		return encode(s, s.at(&n.Own).kind, raw)
	}
	if name == "count" {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: raw}
	}
	return word(raw)
}

func nodeOrigin(origins Origins, i int, name string) string {
	of := fmt.Sprintf("%s[%d].", nodesField, i)
	if name == "hostImage" && origins[of+"dockerVersion"].Source != FromDefault {
		name = "dockerVersion"
	}
	return origins[of+name].String()
}

func (c Config) nodeValues(origins Origins) []Value {
	var all []Value
	for i, n := range c.Nodes {
		for _, w := range n.words() {
			if w[1] != "" {
				all = append(all, Value{Field: fmt.Sprintf("%s[%d].%s", nodesField, i, w[0]), Value: w[1], Origin: nodeOrigin(origins, i, w[0])})
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
