// Package command has what all commands need: groups of commands, their help,
// completion, and errors about arguments and flags in full sentences.
package command

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Prepare completes all commands below root: wrong arguments and flags are usage
// errors, and the help lists the flags in groups, in lines of width columns.
func Prepare(root *cobra.Command, width func() int) {
	root.SetFlagErrorFunc(flagError)
	cobra.AddTemplateFunc("grouped", func(all *pflag.FlagSet) string { return grouped(all, width()) })
	root.SetUsageTemplate(strings.NewReplacer(
		"Flags:\n{{.LocalFlags.FlagUsages | trim", "{{grouped .LocalFlags | trim",
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trim",
		"Global flags:\n{{.InheritedFlags.FlagUsagesWrapped 80 | trim",
	).Replace(root.UsageTemplate()))
	for _, c := range root.Commands() { // cobra checks the argument of root, which is a command
		Each(c, mindArguments)
	}
}

// Each calls do for a command and all commands below it.
func Each(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, child := range c.Commands() {
		Each(child, do)
	}
}

// Execute runs the command that args name, and returns it.
func Execute(ctx context.Context, root *cobra.Command, args []string) (*cobra.Command, error) {
	checkFlagsOfCobra(root)
	root.SetArgs(Separate(root, args))
	c, err := root.ExecuteContextC(ctx)
	return c, argError(c, err)
}

// Parent returns a command that only groups others.
func Parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, SuggestionsMinimumDistance: 2, RunE: sayWhich}
	c.AddCommand(children...)
	return c
}

func sayWhich(c *cobra.Command, _ []string) error {
	_ = c.Help()
	return exit.Usage(errors.New("`" + c.CommandPath() + "` needs one of these commands"))
}

// checkFlagsOfCobra makes cobra's own commands reject unknown arguments with an exit code.
func checkFlagsOfCobra(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.RunE = sayWhich
			Each(c, mindArguments)
		case "help":
			show := c.Run
			c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
				if topic, rest, err := root.Find(args); err != nil || len(rest) > 0 && topic.HasSubCommands() {
					return exit.Usage(unknownCommand(topic, rest[0]))
				}
				show(c, args)
				return nil
			}
		}
	}
}

// FirstArg completes the first argument alone.
func FirstArg(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, word)
	}
}

// CompleteWith returns what the completion of another program offers as the last of args.
func CompleteWith(ctx context.Context, path string, env, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	out, err := host.Command{Args: append([]string{path, "__complete"}, args...), Env: env}.Run(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	offered, directive, _ := strings.Cut("\n"+strings.TrimSpace(string(out)), "\n:")
	number, err := strconv.Atoi(directive)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return strings.FieldsFunc(offered, func(r rune) bool { return r == '\n' }), cobra.ShellCompDirective(number)
}

// grouped returns the flags that are no settings, and the flags of each group, below a title.
func grouped(all *pflag.FlagSet, width int) string {
	var b strings.Builder
	for _, group := range append([]config.FlagGroup{""}, config.Groups...) {
		some := pflag.NewFlagSet("", pflag.ContinueOnError)
		all.VisitAll(func(f *pflag.Flag) {
			if config.GroupOf(f.Name) == group {
				some.AddFlag(f)
			}
		})
		if some.HasAvailableFlags() {
			b.WriteString(cmp.Or(string(group), "Flags") + ":\n" + some.FlagUsagesWrapped(width) + "\n")
		}
	}
	return b.String()
}
