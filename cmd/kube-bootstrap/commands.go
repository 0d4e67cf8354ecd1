package main

import "github.com/spf13/cobra"

func (p *program) addCommands(root *cobra.Command) {
	root.AddCommand(group("host", p.masterCommand(), p.workerCommand(), p.turndownCommand(), p.forgetCommand(), p.preflightCommand(), p.statusCommand(), p.certsCommand(), p.tokenCommand(), p.kubectlCommand(), p.userKubeconfig())...)
	root.AddCommand(group("images", p.offlineCommand())...)
	root.AddCommand(group("cluster", p.clusterCommand(), p.nodeCommand())...)
	root.AddCommand(group("other", p.configCommand(), p.explainCommand(), p.versionCommand())...)
	root.AddCommand(p.bootCommand(), p.agentCommand(), p.keepCommand(), p.markCommand(), p.frontCommand(), p.serveImagesCommand(), p.gendocsCommand(), p.genmanCommand())
	mindArguments(root)
}
