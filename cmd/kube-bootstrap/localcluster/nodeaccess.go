package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/dockertools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func nodeSSH(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "ssh NODE [COMMAND...]",
		Short: "Open a shell on a node, or run a command there",
		Long: `Open a shell on a node, or run a command there. On a terminal it gets one too.
As with ssh, the words of the command are joined by spaces and given to a shell of
the node, so quote what that shell must see as one word. The flags of this command
come before COMMAND. The exit code is the command's.`,
		Example: `  kube-bootstrap node ssh worker-1
  kube-bootstrap node ssh worker-1 journalctl -u docker
  kube-bootstrap node ssh worker-1 -- 'docker ps -q | wc -l'`,
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	command.PassOn(c, 1)
	c.RunE = func(c *cobra.Command, args []string) error {
		err := onNode(c.Context(), con, *o, args[0], shellCommand(args[1:]))
		if failed, ok := errors.AsType[*access.ExitError](err); ok {
			return exit.Status(failed.Code)
		}
		return exit.Firm(err)
	}
	return c
}

// shellCommand returns the command that sshd would run for these words.
func shellCommand(words []string) []string {
	if len(words) == 0 {
		return []string{"/bin/bash", "-l"}
	}
	return []string{"/bin/bash", "-c", strings.Join(words, " ")}
}

func onNode(ctx context.Context, con *console.Console, o cluster.Options, node string, command []string) error {
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if !term.IsTerminal(in) || !term.IsTerminal(out) {
		selection, err := machines.Only(o.Selection, node)
		if err != nil {
			return err
		}
		return tools.RunOn(ctx, selection, node, host.Command{
			Args: command, Stdin: os.Stdin, Stdout: con.Out, Stderr: con.Err,
		})
	}
	sizes := make(chan host.Size, 1)
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	changed <- syscall.SIGWINCH // the first size
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				if columns, rows, err := term.GetSize(out); err == nil {
					sizes <- host.Size{Rows: rows, Columns: columns}
				}
			}
		}
	}()
	before, err := term.MakeRaw(in)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(in, before) }()
	return terminalOn(ctx, o.Selection, node, host.Shell{
		Args: command, Terminal: con.Env("TERM"), Input: os.Stdin, Output: con.Out, Sizes: sizes,
	})
}

// ownEngine keeps this program at the engine that runs the nodes, while docker goes elsewhere.
var ownEngine = config.EnvName("docker-host")

// dockerVariables are the variables of a docker client; a variable without a value is unset.
type dockerVariables []struct{ name, value string }

// shells have commands that set and unset a variable, and that run what docker-env prints.
var shells = map[string]struct{ set, unset, take string }{
	"bash": {"export %s=%q", "unset %s", "# eval \"$(%s)\""},
	"fish": {"set -gx %s %q;", "set -e %s;", "# %s | source"},
}

func nodeDockerEnv(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "docker-env NODE",
		Short: "Point this shell's docker at the engine of a node",
		Long: `Print what points this shell's docker at the engine of a node, so that it builds
and runs there; kube-bootstrap itself stays where it is. The node gets a port
for holders of a certificate, which is made for this cluster and this user;
--unset closes it, for all shells.
Pods of that node can use what is built there; ` + "`cluster load-image --from NODE`" + `
copies it into all nodes.`,
		Example: `  eval "$(kube-bootstrap node docker-env worker-1)"
  kube-bootstrap node docker-env worker-1 --shell fish | source
  eval "$(kube-bootstrap node docker-env --unset)"`,
		Args:              cobra.MaximumNArgs(1), // --unset needs no node
		ValidArgsFunction: command.FirstArg(nodeListing.complete(con.Env)),
	}
	o := addClusterFlags(con, c)
	shell := c.Flags().String("shell", "", "bash or fish (empty: as $SHELL says)")
	unset := c.Flags().Bool("unset", false,
		"print what points it back, and close the port of NODE (default: of the node that $DOCKER_HOST names)")
	format := output.AddFlag(c)
	_ = c.RegisterFlagCompletionFunc("shell",
		cobra.FixedCompletions([]string{"bash", "fish"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		name, err := shellName(con.Env, *shell)
		if err != nil {
			return err
		}
		if *unset {
			if *format != output.Table {
				return exit.Usage(errors.New("--unset prints commands for a shell: omit --output"))
			}
			variables := dockerVariables{
				{"DOCKER_HOST", ""}, {"DOCKER_TLS_VERIFY", ""}, {"DOCKER_CERT_PATH", ""}, {ownEngine, ""},
			}
			if _, err := io.WriteString(con.Out, variables.in(name, c.CommandPath()+" --unset")); err != nil {
				return err
			}
			env := dockertools.DockerEnv{Host: con.Env("DOCKER_HOST"), CertPath: con.Env("DOCKER_CERT_PATH")}
			return dockertools.CloseDockerEnv(c.Context(), o.Selection, strings.Join(args, ""), env)
		}
		if len(args) == 0 {
			return exit.Usage(fmt.Errorf("say which node; `kube-bootstrap node list` names them"))
		}
		return printDockerEnv(con.Out, c, *o, args[0], name, *format)
	}
	return c
}

func printDockerEnv(
	out io.Writer, c *cobra.Command, o cluster.Options, node, shell string, format output.Format,
) error {
	if onMachines(o.Selection) {
		return exit.Firm(machines.NoDockerEnv(node))
	}
	env, err := dockertools.OpenDockerEnv(c.Context(), o.Selection, node)
	if err != nil {
		return exit.Firm(err)
	}
	return format.Print(out, "DockerEnvironment", env, func(w io.Writer) {
		variables := dockerVariables{
			{"DOCKER_HOST", env.Host}, {"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", env.CertPath},
			{ownEngine, env.Engine},
		}
		fmt.Fprint(w, variables.in(shell, c.CommandPath()+" "+node+clusterFlag(o.Selection)))
	})
}

func shellName(env func(string) string, given string) (string, error) {
	name := given
	if name == "" {
		name = filepath.Base(env("SHELL"))
		if name != "fish" {
			name = "bash" // and all that are like it
		}
	}
	if _, known := shells[name]; !known {
		return "", exit.Usage(fmt.Errorf("--shell %q: must be bash or fish", given))
	}
	return name, nil
}

func (v dockerVariables) in(shell, command string) string {
	words := shells[shell]
	var b strings.Builder
	for _, one := range v {
		if one.value == "" {
			fmt.Fprintf(&b, words.unset+"\n", one.name)
		} else {
			fmt.Fprintf(&b, words.set+"\n", one.name, one.value)
		}
	}
	fmt.Fprintf(&b, words.take+"\n", command)
	return b.String()
}
