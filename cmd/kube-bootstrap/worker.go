package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

func (p *program) workerCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "worker",
		Short: "Make this host a worker of a cluster",
		Long: `Make this host a worker of the cluster whose control plane is at --master-ip.
"kube-bootstrap token create" there prints the command to run here. A second run
repairs missing or changed parts and leaves the rest unchanged.`,
		Example: `  kube-bootstrap worker --master-ip 192.168.1.10 --token-file token --ca-cert-hash sha256:...
  MASTER_IP=192.168.1.10 TOKEN=... kube-bootstrap worker --ca-cert-hash sha256:...`,
	}
	return p.addHostVerb(c, hostVerb{
		role: config.RoleWorker,
		verb: config.Worker,
		plan: plan.Worker,
		next: "`kube-bootstrap status` shows what runs here; `kube-bootstrap turndown` takes it all back",
	})
}
