// Command kube-bootstrap turns hosts that run Docker into a Kubernetes cluster,
// and restores them. Only this package and the packages below it print: stdout is
// data, stderr is progress and errors.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/backups"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/manual"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/tokens"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/upgrades"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func main() {
	hideSecrets(os.Args[1:])
	ctx := step.WithBusy(untilSignal(), kernel.Busy)
	// A write to a closed pipe returns an error instead of killing the process, so that the
	// current work can be finished or reverted. Child processes would inherit an ignored SIGPIPE.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	host.CompletePath()
	con, environ := console.Open(), os.Environ()
	con.Env = takeSecrets(con.Env)
	os.Exit(run(ctx, con, environ, os.Args[1:]))
}

// untilSignal returns a context that ends with a signal. A second SIGINT or SIGTERM ends the
// process the hard way. SIGHUP never does: the end of an SSH session sends it several times, and
// Docker may be stopped at that moment. nohup has the process ignore it.
func untilSignal() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if signal.Ignored(syscall.SIGHUP) {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() { <-hangups; cancel() }()
	return ctx
}

func run(ctx context.Context, con *console.Console, environ, args []string) int {
	klog.SetLogger(logr.Discard()) // client-go would write between our lines; what matters comes back as an error
	c, err := command.Execute(ctx, newRoot(con, environ), args)
	con.End()
	code := exit.Tell(ctx, con.Err, err, c.Flags().Lookup("ignore-preflight") != nil)
	if err != nil {
		con.TellLog()
	}
	if con.Mode() == "json" {
		progress.WriteResult(con.Err, code, err)
	}
	return code
}

// newRoot returns the command with all others below it. environ is checked, as NAME=VALUE.
func newRoot(con *console.Console, environ []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kube-bootstrap",
		Short: "Turn hosts that run Docker into a Kubernetes cluster, and revert it",
		Long: `kube-bootstrap turns Linux hosts that already run Docker into a multi-node
Kubernetes cluster. Pods and plain "docker run" containers share one routed
network across hosts, and every change of a host can be reverted.`,
		Example: `  kube-bootstrap master                     # on the first host
  kube-bootstrap token create               # there: prints what to run on the next
  kube-bootstrap turndown                   # on any host: restores its previous state`,
		Version:           thisVersion().String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetOut(con.Out)
	root.SetErr(con.Err)
	con.Version = thisVersion().Version
	con.AddProgress(root.PersistentFlags())
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := settings.FromEnv(con.Env, c); err != nil {
			return err
		}
		warnOfVariables(con, environ, c)
		return con.CheckProgress()
	}
	root.SetVersionTemplate("{{.Version}}\n")
	addCommands(root, con)
	command.Prepare(root, con.Width)
	values := flagValues(con.Env)
	command.Each(root, func(c *cobra.Command) { completeValues(c, values) })
	return root
}

func addCommands(root *cobra.Command, con *console.Console) {
	fresh := func() *cobra.Command { return newRoot(con, nil) }
	addGroup(root, "host", "On the host itself, as root:",
		thishost.Commands(con, tokens.Command(con.Out), upgrades.Host(con), backups.Command(con))...)
	addGroup(root, "images", "Images without a network:", bundles.Commands(con, thishost.Bootstrap(con))...)
	addGroup(root, "cluster", "Many nodes at once:",
		localcluster.Commands(con, upgrades.Cluster(con), backups.ClusterCommand(con))...)
	addGroup(root, "other", "Other:", append(manual.Commands(con.Out, fresh, con.Version),
		settings.Command(con.Out, con.Env), versionCommand(con.Out))...)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}

// addGroup adds commands below a title in the help of root.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// version is set by the linker. A program built by "go install" takes its
// version from the module information.
var version = ""

type versionInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"` // the default
}

func versionCommand(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the Kubernetes it sets up",
		Example: "  kube-bootstrap version -o json",
	}
	format := output.AddFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := thisVersion()
		return format.Print(out, "Version", v, func(w io.Writer) { fmt.Fprintln(w, v) })
	}
	return c
}

func thisVersion() versionInfo {
	v := versionInfo{
		Version: version, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: config.Default().KubernetesVersion,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, strings.Trim(info.Main.Version, "()")) // "(devel)" in a checkout
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	v.Version = cmp.Or(v.Version, "devel")
	return v
}

func (v versionInfo) String() string {
	return fmt.Sprintf("kube-bootstrap %s (%s, %s), Kubernetes %s by default", v.Version, v.Go,
		v.Platform, v.Kubernetes)
}
