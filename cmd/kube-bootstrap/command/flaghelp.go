package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// groupFlags makes the help of all commands list the flags in groups, in lines
// of width columns.
func groupFlags(root *cobra.Command, width func() int) {
	cobra.AddTemplateFunc("grouped", func(all *pflag.FlagSet) string { return grouped(all, width()) })
	template := root.UsageTemplate()
	template = strings.Replace(template, "Flags:\n{{.LocalFlags.FlagUsages | trim", "{{grouped .LocalFlags | trim", 1)
	template = strings.Replace(template, "Global Flags:\n{{.InheritedFlags.FlagUsages | trim", "Global flags:\n{{.InheritedFlags.FlagUsagesWrapped 80 | trim", 1)
	root.SetUsageTemplate(template)
}

// grouped returns the flags of a command that are no settings, and then those
// of each group of settings, below a title.
func grouped(all *pflag.FlagSet, width int) string {
	var b strings.Builder
	for _, group := range append([]config.Group{""}, config.Groups...) {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		all.VisitAll(func(f *pflag.Flag) {
			if config.GroupOf(f.Name) == group {
				some.AddFlag(f)
			}
		})
		title := "Flags:"
		if group != "" {
			title = string(group) + ":"
		}
		if some.HasAvailableFlags() {
			b.WriteString(title + "\n" + some.FlagUsagesWrapped(width) + "\n")
		}
	}
	return b.String()
}
