package localcluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func clusterHosts(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "hosts [HOST...]",
		Short: "Create bare hosts to rehearse on",
		Long: `Create hosts without a cluster: containers that behave like machines, with
systemd, their own Docker, and this program in /usr/local/bin. Without names,
create two, NAME-1 and NAME-2. Existing hosts are started, and further names add
hosts. "node ssh", "node scp" and "node list" work with them, with --cluster NAME,
and "cluster clean" removes them.

With --bundle, the hosts find the bundle as /opt/kube-bootstrap/bundle.tar.zst.`,
		Example: `  kube-bootstrap cluster hosts --name lab
  kube-bootstrap node ssh lab-1 --cluster lab -- kube-bootstrap preflight
  kube-bootstrap cluster clean --name lab`,
	}
	const verbs = config.Named | config.BareHosts
	settings.AddFlags(c, verbs)
	takeCluster(c)
	con.AddRecords(c.Flags())
	c.RunE = func(c *cobra.Command, names []string) error {
		cfg, origins, err := settings.Load(con.Env, c.Flags(), verbs, "")
		if err != nil {
			return err
		}
		return createHosts(step.WithLimit(c.Context(), cfg.TimeoutForServices), con, cfg, origins, names)
	}
	return c
}

func createHosts(
	ctx context.Context, con *console.Console, cfg config.Config, origins config.Origins, names []string,
) error {
	cfg, release, err := withFreeSubnet(ctx, cfg, origins)
	if err != nil {
		return err
	}
	defer release()
	o, err := toClusterOptions(cfg, origins)
	if err != nil {
		return err
	}
	o.Request = topology.Request{Hosts: names, Subnet: o.Subnet, HostImage: o.HostImage}
	if len(names) == 0 {
		o.Hosts = []string{o.Name + "-1", o.Name + "-2"}
	}
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	started := time.Now()
	var nodes []topology.ClusterNode
	err = Drawn(runner, runAgain, func(emit func(session.HostEvent)) (err error) {
		nodes, err = cluster.Hosts(ctx, o, emit)
		return err
	})
	if err != nil {
		return err
	}
	con.Done(started, fmt.Sprintf("%d bare hosts run", len(nodes)))
	return showHosts(con, o, nodes)
}

func showHosts(con *console.Console, o cluster.Options, nodes []topology.ClusterNode) error {
	err := output.Table.Print(con.Out, "Host", nodes, func(w io.Writer) {
		output.Row(w, "HOST", "ADDRESS")
		for _, n := range nodes {
			output.Row(w, n.Name, n.Addr.String())
		}
	})
	con.Say("to open a shell: kube-bootstrap node ssh " + nodes[0].Name + clusterFlag(o.Selection))
	con.Say("to remove them: kube-bootstrap cluster clean" + nameFlag(o.Selection))
	return err
}
