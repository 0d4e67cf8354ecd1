package localcluster

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// ownEngine keeps this program at the engine that runs the nodes, while docker
// goes elsewhere.
var ownEngine = config.EnvName("docker-host")

// dockerVariables are what a docker client looks at; without a value it is to
// be unset.
type dockerVariables []struct{ name, value string }

// shells are the commands of each shell that set a variable, unset a variable, and
// run all commands that docker-env prints.
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
	o := addClusterFlags(con.Env, c)
	shell := c.Flags().String("shell", "", "bash or fish (empty: as $SHELL says)")
	unset := c.Flags().Bool("unset", false, "print what points it back, and close the port of NODE (default: of the node that $DOCKER_HOST names)")
	format := output.AddFlag(c)
	_ = c.RegisterFlagCompletionFunc("shell", cobra.FixedCompletions([]string{"bash", "fish"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		name, err := shellName(con.Env, *shell)
		if err != nil {
			return err
		}
		if *unset {
			variables := dockerVariables{{"DOCKER_HOST", ""}, {"DOCKER_TLS_VERIFY", ""}, {"DOCKER_CERT_PATH", ""}, {ownEngine, ""}}
			if _, err := io.WriteString(con.Out, variables.in(name, c.CommandPath()+" --unset")); err != nil {
				return err
			}
			env := tools.DockerEnv{Host: con.Env("DOCKER_HOST"), CertPath: con.Env("DOCKER_CERT_PATH")}
			return tools.CloseDockerEnv(c.Context(), o.Options, strings.Join(args, ""), env)
		}
		if len(args) == 0 {
			return exit.Usage(fmt.Errorf("say which node; `kube-bootstrap node list` names them"))
		}
		return printDockerEnv(con.Out, c, *o, args[0], name, *format)
	}
	return c
}

func printDockerEnv(out io.Writer, c *cobra.Command, o cluster.Options, node, shell string, format output.Format) error {
	env, err := tools.OpenDockerEnv(c.Context(), o.Options, node)
	if err != nil {
		return exit.Firm(err)
	}
	return format.Print(out, "DockerEnvironment", env, func(w io.Writer) {
		variables := dockerVariables{{"DOCKER_HOST", env.Host}, {"DOCKER_TLS_VERIFY", "1"}, {"DOCKER_CERT_PATH", env.CertPath}, {ownEngine, env.Engine}}
		fmt.Fprint(w, variables.in(shell, c.CommandPath()+" "+node+clusterFlag(o.Options)))
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
	var lines []string
	for _, one := range v {
		if one.value == "" {
			lines = append(lines, fmt.Sprintf(words.unset, one.name))
		} else {
			lines = append(lines, fmt.Sprintf(words.set, one.name, one.value))
		}
	}
	return strings.Join(slices.Concat(lines, []string{fmt.Sprintf(words.take, command)}), "\n") + "\n"
}
