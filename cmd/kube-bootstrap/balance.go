package main

import (
	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

// balanceCommand is what the container of the balancer runs.
func (p *program) balanceCommand() *cobra.Command {
	var s balancer.Settings
	c := &cobra.Command{
		Use: "balance", Hidden: true, Args: cobra.NoArgs,
		Short: "Lead two ports of this host to control planes that are alive",
		RunE:  func(c *cobra.Command, _ []string) error { return plan.Balance(c.Context(), s) },
	}
	c.Flags().StringVar(&s.Own, "own", "", "address of this host")
	c.Flags().IntVar(&s.Port, "port", 0, "port on 127.0.0.1 that leads to an API server; the next one leads to etcd")
	c.Flags().IntVar(&s.APIPort, "api-port", 0, "port of the API servers")
	c.Flags().StringVar(&s.ClusterCA, "cluster-ca", "", "authority of the API servers")
	c.Flags().StringVar(&s.EtcdCA, "etcd-ca", "", "authority of etcd")
	c.Flags().StringVar(&s.Cert, "cert", "", "certificate that etcd knows")
	c.Flags().StringVar(&s.Key, "key", "", "its key")
	return c
}
