package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

func (p *program) masterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "master",
		Short: "Make this host the control plane of a cluster, or with --join one more of them",
		Long: `Make this host the control plane of a cluster: a second Docker for etcd and
flannel, the main Docker on flannel's network, and a kubelet that runs
Kubernetes. With --join it becomes a further control plane of the cluster of
--master-ip. "kube-bootstrap token create --control-plane" on that host prints the
command to run here. A second run repairs missing or changed parts and leaves the
rest unchanged.`,
		Example: `  kube-bootstrap master
  kube-bootstrap master --bundle kube-amd64.tar.zst    # without a network
  kube-bootstrap master --dry-run                      # every change, none made
  kube-bootstrap master --join --master-ip 192.168.1.10 --token-file token --ca-cert-hash sha256:...`,
	}
	return p.addHostVerb(c, hostVerb{
		role: config.RoleMaster,
		verb: config.Master,
		plan: plan.Master,
		next: "`kube-bootstrap kubectl get nodes` lists its nodes; `kube-bootstrap token create` prints what to run on the next host",
	})
}
