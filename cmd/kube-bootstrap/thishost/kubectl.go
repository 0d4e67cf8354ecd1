package thishost

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func kubectlCommand(env func(string) string) *cobra.Command {
	return &cobra.Command{
		Use:   "kubectl [ARGS...]",
		Short: "Run kubectl on this control plane",
		Long: `Run the kubectl of this control plane's Kubernetes version, as root. All
arguments are kubectl's. Unless KUBECONFIG is set, it uses the administrator's
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
			return host.Become(program, append([]string{"kubectl"}, args...), env...)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, last string) ([]cobra.Completion, cobra.ShellCompDirective) {
			program, env, err := hostKubectl(c.Context(), env)
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return command.CompleteWith(c.Context(), program, env, append(args, last))
		},
	}
}

// hostKubectl returns the kubectl of this host, and the environment for it.
func hostKubectl(ctx context.Context, variable func(string) string) (path string, env []string, err error) {
	if err := asRoot(); err != nil {
		return "", nil, err
	}
	kubeconfig := variable("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig = adminKubeconfig
		if !(host.Files{}).Exists(kubeconfig) {
			return "", nil, &step.Problem{
				Name: "role", Text: "this host is not a control plane, and KUBECONFIG is not set",
				Remedy: "run it on a control plane, or `kube-bootstrap cluster kubectl` for a cluster of containers", Firm: true,
			}
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
	return path, []string{"KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + cmp.Or(variable("KUBECACHEDIR"), kubectlCache)}, nil
}

// kubectlCache is removed by turndown, unlike kubectl's default, ~/.kube/cache.
const kubectlCache = host.StateDir + "/kubectl-cache"
