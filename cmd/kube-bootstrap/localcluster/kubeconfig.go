package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/kubeconfig"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

func clusterKubeconfig(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig of a cluster, or merge it into yours",
		Long: `Print the administrator's kubeconfig of a cluster, for use on this machine. Its address
leads to any control plane that is ready, and stays the same when control planes
come and go. With --merge it goes into the first file of $KUBECONFIG, or into ~/.kube/config, and
becomes the current context; "cluster clean" removes it.`,
		Example: `  kube-bootstrap cluster kubeconfig > kubeconfig
  kube-bootstrap cluster kubeconfig --merge`,
	}
	o := AddNameFlags(con, c)
	merge := c.Flags().Bool("merge", false, "write it into $KUBECONFIG or ~/.kube/config")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *merge {
			return mergeKubeconfig(c.Context(), con, *o, "")
		}
		data, err := apiserver.Kubeconfig(c.Context(), o.Selection)
		return output.Write(con.Out, data, exit.Firm(err))
	}
	return c
}

const noKubeconfig = "-"

// mergeKubeconfig merges the admin's kubeconfig into a file; without a name, into the user's own.
func mergeKubeconfig(ctx context.Context, con *console.Console, o cluster.Options, file string) error {
	if file == noKubeconfig {
		return nil
	}
	path, err := kubeconfigPath(con.Env, file)
	if err != nil {
		return err
	}
	name, err := kubeconfig.Merge(ctx, o.Selection, path)
	if err != nil {
		return exit.Firm(err)
	}
	con.Say("context " + name + " is the current one in " + path)
	return nil
}

func kubeconfigPath(env func(string) string, file string) (string, error) {
	if files := filepath.SplitList(env("KUBECONFIG")); file == "" && len(files) > 0 {
		file = files[0]
	}
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the user's kubeconfig: %w; set KUBECONFIG", err)
		}
		file = filepath.Join(home, ".kube", "config")
	}
	return filepath.Abs(file)
}

func clusterKubectl(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "kubectl [ARGS...]",
		Short: "Run kubectl for a cluster, on this machine",
		Long: `Run the kubectl of the cluster's Kubernetes version on this machine, with the
administrator's kubeconfig. The first time, the program is copied into the
cache: from a control plane, or with a remote engine from the bundle on this
machine. For a cluster of machines, kubectl runs on a control plane, so it cannot
read files of this machine: use "-f -". Flags of this command come first; all
that follows them is kubectl's. A "--" between them is not necessary.`,
		Example: `  kube-bootstrap cluster kubectl get nodes
  kube-bootstrap cluster kubectl -n kube-system get pods
  kube-bootstrap cluster kubectl --name second apply -f app.yaml`,
	}
	o := AddNameFlags(con, c)
	command.PassOn(c, 0)
	c.RunE = func(c *cobra.Command, args []string) error {
		if onMachines(o.Selection) {
			return kubectlOnMachine(c.Context(), con, *o, args)
		}
		k, err := tools.OpenKubectl(c.Context(), o.Selection, con.Env)
		if err != nil {
			return exit.Firm(err)
		}
		err = host.Become(k.Program, append([]string{"kubectl"}, args...), k.Env...)
		if errors.Is(err, syscall.ENOEXEC) {
			return exit.Firm(tools.OtherArch())
		}
		return err
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, last string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if _, err := clusterOptions(con, c, o); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		k, err := tools.OpenKubectl(c.Context(), o.Selection, con.Env)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return command.CompleteWith(c.Context(), k.Program, k.Env, append(args, last))
	}
	return c
}
