package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// groupFlags makes the help of all commands list the flags in groups, in lines
// that fit the terminal.
func (p *program) groupFlags(root *cobra.Command) {
	cobra.AddTemplateFunc("grouped", func(all *pflag.FlagSet) string { return grouped(all, p.helpWidth()) })
	template := root.UsageTemplate()
	template = strings.Replace(template, "Flags:\n{{.LocalFlags.FlagUsages | trim", "{{grouped .LocalFlags | trim", 1)
	template = strings.Replace(template, "Global Flags:\n{{.InheritedFlags.FlagUsages | trim", "Global flags:\n{{.InheritedFlags.FlagUsagesWrapped 80 | trim", 1)
	root.SetUsageTemplate(template)
}

// helpWidth is the width of the terminal that help is printed on, within what
// can be read well.
func (p *program) helpWidth() int {
	const narrow, wide = 80, 120
	out, ok := p.out.(output)
	if !ok {
		return narrow
	}
	file, ok := out.Writer.(*os.File)
	if !ok {
		return narrow
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width == 0 {
		return narrow
	}
	return min(max(width, 40), wide)
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
