package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// markCommand is the command that `cluster up` runs on a control plane, with
// the labels and taints of a node from its file.
func (p *program) markCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "mark NODE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Give another node of the cluster the labels and taints of its settings",
	}
	labels := c.Flags().StringSlice("node-label", nil, "labels of the node: KEY=VALUE")
	taints := c.Flags().StringSlice("node-taint", nil, "taints of the node: KEY=VALUE:EFFECT")
	c.RunE = func(c *cobra.Command, args []string) error {
		h, err := openControlPlane()
		if err != nil {
			return err
		}
		return p.do(c.Context(), "label node "+args[0], func(ctx context.Context) error { return membership.Mark(ctx, h, args[0], *labels, *taints) })
	}
	return c
}

func openControlPlane() (*local.Host, error) {
	if err := asRoot(); err != nil {
		return nil, err
	}
	saved, err := local.ReadSaved(host.Files{})
	if err = errors.Join(err, saved.Lost); err != nil {
		return nil, err
	}
	if saved.Role != config.RoleMaster {
		return nil, &step.Problem{Name: "role", Text: "this host is no control plane", Remedy: "run it on one", Firm: true}
	}
	return local.Open(saved.Config)
}
