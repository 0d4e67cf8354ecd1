package reference

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
