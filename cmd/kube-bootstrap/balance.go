package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

// balanceCommand is what the container of the balancer runs.
func (p *program) balanceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "balance SETTINGS", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Lead two ports of this host to control planes that are alive",
		RunE: func(c *cobra.Command, args []string) error {
			var s balancer.Settings
			if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
				return &usageError{fmt.Errorf("settings: %w", err)}
			}
			return plan.Balance(c.Context(), s)
		},
	}
}

// frontCommand runs the balancer in front of a cluster of containers.
func (p *program) frontCommand() *cobra.Command {
	front := balancer.Front{}
	c := &cobra.Command{
		Use: "front", Hidden: true, Args: cobra.NoArgs,
		Short: "Lead a port to control planes that are ready",
		RunE:  func(c *cobra.Command, _ []string) error { return front.Serve(c.Context()) },
	}
	c.Flags().StringVar(&front.Name, "name", "", "name that resolves to all control planes")
	c.Flags().IntVar(&front.Port, "port", 0, "port of the API servers, and of the front")
	return c
}
