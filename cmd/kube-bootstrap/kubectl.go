package main

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/tools"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) kubectlCommand() *cobra.Command {
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
			program, env, err := p.hostKubectl(c.Context())
			if err != nil {
				return err
			}
			return host.Become(program, append([]string{"kubectl"}, args...), env...)
		},
		ValidArgsFunction: func(c *cobra.Command, args []string, last string) ([]cobra.Completion, cobra.ShellCompDirective) {
			program, env, err := p.hostKubectl(c.Context())
			if err != nil {
				return nil, cobra.ShellCompDirectiveError
			}
			return kubectlCompletes(c.Context(), program, env, append(args, last))
		},
	}
}

// hostKubectl returns the kubectl of this host, and the environment for it.
func (p *program) hostKubectl(ctx context.Context) (path string, env []string, err error) {
	if err := asRoot(); err != nil {
		return "", nil, err
	}
	kubeconfig := p.env("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig = adminKubeconfig
		if !(host.Files{}).Exists(kubeconfig) {
			return "", nil, &step.Problem{
				Name: "role", Text: "this host is not a control plane, and KUBECONFIG is not set",
				Remedy: "run it on a control plane, or `kube-bootstrap cluster kubectl` for a cluster of containers", Firm: true,
			}
		}
	}
	path, running, err := parts.Kubectl(ctx)
	if err != nil {
		return "", nil, err
	}
	if !running {
		return "", nil, &step.Problem{
			Name: "kubelet-stopped", Text: "kubectl is in the kubelet's container, which does not run on this host",
			Remedy: "run `kube-bootstrap status`", Firm: true,
		}
	}
	return path, []string{"KUBECONFIG=" + kubeconfig, "KUBECACHEDIR=" + cmp.Or(p.env("KUBECACHEDIR"), kubectlCache)}, nil
}

// kubectlCache is removed by turndown, unlike kubectl's default, ~/.kube/cache.
const kubectlCache = host.StateDir + "/kubectl-cache"

// kubectlCompletes returns what kubectl itself offers as the last of args.
func kubectlCompletes(ctx context.Context, path string, env, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
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

func (p *program) clusterKubectl() *cobra.Command {
	c := &cobra.Command{
		Use:   "kubectl [ARGS...]",
		Short: "Run kubectl for a cluster, on this machine",
		Long: `Run the kubectl of the cluster's Kubernetes version on this machine, with the
administrator's kubeconfig. The program is copied from a control plane into the
cache the first time. Flags before the first argument are those of this
command, so write "--" before flags of kubectl.`,
		Example: "  kube-bootstrap cluster kubectl get nodes\n  kube-bootstrap cluster kubectl --name second -- apply -f app.yaml",
		Args:    cobra.ArbitraryArgs,
	}
	o := p.addNameFlags(c)
	c.Flags().SetInterspersed(false)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := p.clusterOptions(c, o); err != nil {
			return err
		}
		k, err := tools.OpenKubectl(c.Context(), o.Options)
		if err != nil {
			return &firmError{err}
		}
		err = host.Become(k.Program, append([]string{"kubectl"}, args...), "KUBECONFIG="+k.Kubeconfig)
		if errors.Is(err, syscall.ENOEXEC) {
			return &firmError{&step.Problem{
				Name: "kubectl-arch", Text: "the kubectl of the cluster is a program for another architecture than this machine's",
				Remedy: "run it on a control plane: `kube-bootstrap node ssh NODE -- kubectl ...`",
			}}
		}
		return err
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, last string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if err := p.clusterOptions(c, o); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		k, err := tools.OpenKubectl(c.Context(), o.Options)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return kubectlCompletes(c.Context(), k.Program, []string{"KUBECONFIG=" + k.Kubeconfig}, append(args, last))
	}
	return c
}
