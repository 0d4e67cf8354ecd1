package main

import "github.com/spf13/cobra"

func (p *program) addCommands(root *cobra.Command) {
	root.AddCommand(group("host", p.masterCommand(), p.workerCommand(), p.turndownCommand(), p.forgetCommand(), p.preflightCommand(), p.statusCommand(), p.tokenCommand())...)
	root.AddCommand(group("images", p.offlineCommand())...)
	root.AddCommand(group("fleet", p.clusterCommand(), p.nodeCommand())...)
	root.AddCommand(group("other", p.configCommand(), p.versionCommand())...)
	root.AddCommand(p.bootCommand(), p.approveCommand(), p.markCommand(), p.balanceCommand(), p.serveImagesCommand(), p.gendocsCommand())
	mindArguments(root)
}

// mindArguments makes wrong arguments an error of the one who typed them.
func mindArguments(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &usageError{err}
			}
			return nil
		}
	}
	for _, child := range c.Commands() {
		mindArguments(child)
	}
}
