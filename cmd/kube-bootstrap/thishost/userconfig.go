package thishost

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
)

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
		Args: cobra.NoArgs,
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
		if err := onControlPlane(); err != nil {
			return err
		}
		data, err := parts.UserKubeconfig(u)
		switch {
		case err != nil:
			return err
		case *file != "":
			return host.WriteFile(*file, data, 0o600)
		}
		_, err = out.Write(data)
		return err
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
