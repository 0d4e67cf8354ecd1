package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// serveImagesCommand serves images during the tests of `cluster e2e`: some
// tests pull an image that every node already has.
func (p *program) serveImagesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "serve-images SETTINGS", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Serve images of this host's containerd to other hosts",
		RunE: func(c *cobra.Command, args []string) error {
			var s registry.Served
			if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
				return &usageError{fmt.Errorf("settings: %w", err)}
			}
			return registry.Serve(c.Context(), s)
		},
	}
}
