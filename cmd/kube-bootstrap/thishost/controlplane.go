package thishost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func forgetCommand(con *console.Console) *cobra.Command {
	compromised := false
	c := &cobra.Command{
		Use:   "forget NAME",
		Short: "Remove a host that is lost from its cluster",
		Long: `Remove a host that is lost from its cluster: its user of etcd, so that its
certificate for flannel becomes useless, its subnet, and its node. A control
plane is also removed from the members of etcd. Run this on a control plane that
works. On a host that still works, run "kube-bootstrap turndown" instead.

With --compromised, a worker is removed although it is alive: somebody else
controls it. All that it has opens nothing any more, and its pods are deleted.`,
		Example: "  kube-bootstrap forget node-3\n  kube-bootstrap forget --compromised node-3",
		RunE: func(c *cobra.Command, args []string) error {
			forget := membership.Forget
			if compromised {
				forget = membership.ForgetCompromised
			}
			return onControlPlane(c.Context(), con, "forget "+args[0], func(ctx context.Context, p parts.Parts) error {
				return exit.Firm(forget(ctx, p.Etcd.Member, p.Cluster, args[0]))
			})
		},
	}
	c.Flags().BoolVar(&compromised, "compromised", false,
		"remove a worker that somebody else controls, although it is alive")
	return c
}

// OpenControlPlane opens this host with its settings in force, which must be a control plane.
func OpenControlPlane() (*local.Host, error) {
	if err := needsAdmin(); err != nil {
		return nil, err
	}
	return openControlPlane()
}

func openControlPlane() (*local.Host, error) {
	saved, err := savedSettings()
	if err = errors.Join(err, saved.Lost); err != nil {
		return nil, err
	}
	if saved.Role != config.RoleControlPlane {
		return nil, noControlPlane("`kube-bootstrap master` was not run on it")
	}
	return local.Open(saved.Config)
}

// onControlPlane shows work on this control plane as a step.
func onControlPlane(
	ctx context.Context, con *console.Console, name string, work func(context.Context, parts.Parts) error,
) error {
	h, err := openControlPlane()
	if err != nil {
		return err
	}
	return con.Do(ctx, step.IDOf(name), name, func(ctx context.Context) error {
		return work(h.Limited(ctx), parts.InForce(h))
	})
}

const adminKubeconfig = "/etc/kubernetes/admin.conf"

// AdminClient speaks to the API server with the rights that only root has.
func AdminClient() (kubernetes.Interface, error) {
	if err := needsAdmin(); err != nil {
		return nil, err
	}
	return kube.Kubeconfig(adminKubeconfig).Client()
}

// needsAdmin returns a problem unless root of a control plane runs this.
func needsAdmin() error {
	if err := AsRoot(); err != nil {
		return err
	}
	if _, err := os.Stat(adminKubeconfig); err != nil {
		return noControlPlane(err.Error())
	}
	return nil
}

func noControlPlane(because string) error {
	return &step.Problem{Name: "role", Text: "this host is not a control plane: " + because, Firm: true,
		Remedy: "run this on the control-plane host, after `kube-bootstrap master`"}
}

func kubectlCommand(env func(string) string) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGS...]",
		Short: "Run kubectl on this control plane",
		Long: `Run the kubectl of this control plane's Kubernetes version, as root. All
arguments are kubectl's, and a "--" before them is dropped. Unless KUBECONFIG is set, it uses the administrator's
kubeconfig /etc/kubernetes/admin.conf.

"kube-bootstrap master" installs a command "kubectl" that does the same, on hosts
that have no kubectl; "kube-bootstrap turndown" removes it. For a cluster of
containers, use "kube-bootstrap cluster kubectl".`,
		Example:            "  kube-bootstrap kubectl get nodes\n  kube-bootstrap kubectl apply -f app.yaml",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			program, env, err := hostKubectl(c.Context(), env)
			if err != nil {
				return err
			}
			return host.Become(program, append([]string{"kubectl"}, forKubectl(args)...), env...)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, last string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			program, env, err := hostKubectl(c.Context(), env)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return command.CompleteWith(c.Context(), program, env, forKubectl(append(args, last)))
		},
	}
}

// forKubectl returns the arguments without a "--" before them: cobra drops none, because it parses
// no flags of this command, and kubectl would print its help.
func forKubectl(args []string) []string {
	if len(args) > 0 && args[0] == "--" {
		return args[1:]
	}
	return args
}

// hostKubectl returns the kubectl of this host, and the environment for it.
func hostKubectl(ctx context.Context, variable func(string) string) (path string, env []string, err error) {
	if err := AsRoot(); err != nil {
		return "", nil, err
	}
	kubeconfig := variable("KUBECONFIG")
	if kubeconfig == "" && !(host.Files{}).Exists(adminKubeconfig) {
		return "", nil, &step.Problem{
			Name: "role", Text: "this host is not a control plane, and KUBECONFIG is not set",
			Remedy: "run it on a control plane, or `kube-bootstrap cluster kubectl` for a cluster of containers",
			Firm:   true,
		}
	}
	path, running, err := parts.RunningKubelet().Kubectl(ctx)
	if err != nil {
		return "", nil, err
	}
	if !running {
		return "", nil, &step.Problem{
			Name: "kubelet-stopped", Text: "kubectl is in the kubelet's container, which does not run on this host",
			Remedy: "run `kube-bootstrap status`", Firm: true,
		}
	}
	env = []string{"KUBECONFIG=" + cmp.Or(kubeconfig, adminKubeconfig),
		"KUBECACHEDIR=" + cmp.Or(variable("KUBECACHEDIR"), kubectlCache)}
	if kubeconfig == "" {
		direct, err := kube.NoProxy(adminKubeconfig, variable)
		return path, append(env, direct), err
	}
	return path, env, nil
}

// kubectlCache is removed by turndown, unlike kubectl's default, ~/.kube/cache.
const kubectlCache = host.StateDir + "/kubectl-cache"

func userKubeconfig(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "kubeconfig --user NAME",
		Short: "Create a kubeconfig with a client certificate for a user",
		Long: `Create a kubeconfig with a client certificate for a user, on a control plane.
The certificate grants no rights by itself: RBAC grants them to its user name and
its groups. A member of the group "` + controlplane.AdminGroup + `" is an
administrator.

A certificate cannot be revoked before it expires, so choose a short --ttl. The
kubeconfig contains the private key; --file writes it with mode 0600.`,
		Example: `  kube-bootstrap kubeconfig --user anna --group dev --ttl 8h > anna.conf
  kube-bootstrap kubeconfig --user anna --server https://k8s.example.com:6443 --file anna.conf
  kube-bootstrap kubectl create rolebinding dev --clusterrole edit --group dev`,
	}
	var u controlplane.User
	c.Flags().StringVar(&u.Name, "user", "", "name of the user")
	c.Flags().StringSliceVar(&u.Groups, "group", nil, "group of the user; may be repeated")
	c.Flags().DurationVar(&u.Life, "ttl", 24*time.Hour, "time until the certificate expires")
	c.Flags().StringVar(&u.Server, "server", "", "URL of the API server (empty: that of this control plane)")
	file := c.Flags().String("file", "", "file to write, with mode 0600 (empty: standard output)")
	c.RunE = func(*cobra.Command, []string) error {
		if err := checkUser(u); err != nil {
			return exit.Usage(err)
		}
		if err := needsAdmin(); err != nil {
			return err
		}
		data, err := parts.UserKubeconfig(u)
		if err == nil && *file != "" {
			return host.WriteFile(*file, data, 0o600)
		}
		return output.Write(out, data, err)
	}
	return c
}

func checkUser(u controlplane.User) error {
	const longest = 365 * 24 * time.Hour
	var errs []error
	if u.Name == "" {
		errs = append(errs, errors.New("--user is missing: give the name of the user"))
	}
	if u.Life < time.Minute || u.Life > longest {
		errs = append(errs, fmt.Errorf("--ttl %s: must be between 1m and %.0fh", u.Life, longest.Hours()))
	}
	return errors.Join(errs...)
}
