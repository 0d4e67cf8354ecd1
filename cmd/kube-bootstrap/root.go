package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// program is one run of the command: where it reads and writes, and the flags
// that every command has.
type program struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	environ  func() []string // all variables, as NAME=VALUE; nil: none are checked
	terminal bool            // err is a terminal whose lines can be redrawn
	asks     bool            // in and err are a terminal on which a question can be answered

	progress string
	timeline string
	config   string
	report   progress.Reporter // set while a plan is walked
	ignores  bool              // the command has --ignore-preflight
}

func (p *program) run(ctx context.Context, args []string) int {
	klog.SetLogger(logr.Discard()) // client-go would write between our lines; what matters comes back as an error
	root := p.root()
	checkOwnOfCobra(root)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	p.endProgress()
	p.ignores = command.Flags().Lookup("ignore-preflight") != nil
	return p.tell(ctx, argError(command, err))
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "kube-bootstrap",
		Short: "Turn hosts that run Docker into a Kubernetes cluster, and take it all back",
		Long: `kube-bootstrap turns Linux hosts that already run Docker into a multi-node
Kubernetes cluster. Pods and plain "docker run" containers share one routed
network across hosts, and every change made to a host can be taken back.`,
		Example: `  kube-bootstrap master                     # on the first host
  kube-bootstrap token create               # there: prints what to run on the next
  kube-bootstrap turndown                   # on any: as it was before`,
		Version:           thisVersion().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetOut(p.out)
	root.SetErr(p.err)
	root.PersistentFlags().StringVar(&p.progress, "progress", "auto", "how progress is shown on stderr: auto (bars on a terminal that can redraw lines, else plain), bars, plain, json or none")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		p.warnOfVariables(c)
		return p.checkProgress()
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: "host", Title: "On the host itself, as root:"},
		&cobra.Group{ID: "images", Title: "Images without a network:"},
		&cobra.Group{ID: "cluster", Title: "Many nodes at once:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	p.groupFlags(root)
	p.addCommands(root)
	p.completeValues(root)
	return root
}

// checkOwnOfCobra makes cobra's own commands reject unknown arguments. By
// default they print a help text and exit with 0.
func checkOwnOfCobra(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			c.RunE = sayWhich
			mindArguments(c)
		case "help":
			show := c.Run
			c.Run, c.RunE = nil, func(c *cobra.Command, args []string) error {
				if topic, rest, err := root.Find(args); err != nil || len(rest) > 0 && topic.HasSubCommands() {
					return &usageError{unknownCommand(topic, rest[0])}
				}
				show(c, args)
				return nil
			}
		}
	}
}

// sayWhich returns a usage error for a command that only groups subcommands.
func sayWhich(c *cobra.Command, _ []string) error {
	_ = c.Help()
	return &usageError{errors.New("`" + c.CommandPath() + "` needs one of these commands")}
}

func group(id string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		c.GroupID = id
	}
	return commands
}

// parent is a command that only holds others.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, SuggestionsMinimumDistance: 2, RunE: sayWhich}
	c.AddCommand(children...)
	return c
}

// flagError adds the flag that was probably meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if remedy, known := config.OldFlag(unknown.GetSpecifiedName()); known {
			return &usageError{fmt.Errorf("%w; %s", err, remedy)}
		}
		if of := c.Flags().Lookup("cluster"); of != nil && unknown.GetSpecifiedName() == "name" {
			return &usageError{fmt.Errorf("%w; --cluster names the cluster", err)}
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if best := config.Nearest(unknown.GetSpecifiedName(), known); best != "" {
			err = fmt.Errorf("%w, did you mean --%s?", err, best)
		}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration" {
		return &usageError{fmt.Errorf("--%s %q: must be a duration in hours, minutes or seconds, such as 24h or 90s", invalid.GetFlag().Name, invalid.GetValue())}
	}
	return &usageError{fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())}
}
