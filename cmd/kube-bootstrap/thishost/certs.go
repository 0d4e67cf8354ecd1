package thishost

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func certsCommand(con *console.Console) *cobra.Command {
	return command.Parent("certs", "List, renew and rotate certificates and keys", certsList(con.Out), certsRenew(con), certsRotate(con))
}

func certsList(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the certificates of this host with their expiry and what renews them",
		Long: `List the certificates of this host with their expiry and what renews them. On a
control plane this includes the certificate authorities of the cluster. A
kubeconfig is listed if it contains a certificate.`,
		Example: "  kube-bootstrap certs list\n  kube-bootstrap certs list -o json",
		Args:    cobra.NoArgs,
	}
	format := output.AddListFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		all, err := certificatesHere()
		if err != nil {
			return err
		}
		return output.PrintList(*format, out, "Certificate", all, certificateColumns)
	}
	return c
}

var certificateColumns = []output.Column[pki.Listed]{
	{Head: "NAME", Cell: func(c pki.Listed) string { return c.Name }},
	{Head: "SIGNER", Cell: func(c pki.Listed) string { return c.Signer }},
	{Head: "EXPIRES", Cell: expires},
	{Head: "LEFT", Cell: left},
	{Head: "RENEWED BY", Cell: renewedBy},
	{Head: "PURPOSE", Cell: func(c pki.Listed) string { return c.Purpose }},
	{Head: "PATH", Cell: func(c pki.Listed) string { return c.Path }, Wide: true},
}

func certificatesHere() ([]pki.Listed, error) {
	if err := asRoot(); err != nil {
		return nil, err
	}
	saved, err := local.ReadSaved(host.Files{})
	if err != nil {
		return nil, err
	}
	if !saved.Installed() {
		return nil, &step.Problem{Name: "role", Text: "this host is not part of a cluster, so it has no certificates", Firm: true,
			Remedy: "run this on a host where `kube-bootstrap master` or `kube-bootstrap worker` has run"}
	}
	return renewal.Certificates(host.Files{}, saved.Role), nil
}

func expires(one pki.Listed) string {
	if one.Expires.IsZero() {
		return "unknown"
	}
	return one.Expires.Local().Format(time.DateTime)
}

// left is how long a certificate is still valid, in days unless that says too
// little.
func left(one pki.Listed) string {
	switch {
	case one.Problem != "":
		return one.Problem
	case one.DaysLeft >= 2:
		return fmt.Sprintf("%d days", one.DaysLeft)
	}
	return progress.Took(time.Until(one.Expires))
}

func renewedBy(one pki.Listed) string {
	if one.RenewedBy == "" {
		return "nobody"
	}
	return one.RenewedBy
}

func certsRenew(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew certificates of this control plane and restart the components that use them",
		Long: `Renew the certificates of this control plane that are named, as in "certs list",
or all. Components that read their certificates only when they start are
restarted one after the other: etcd, flanneld, the controller manager, the scheduler and
the kubelet. Pods keep running. Only one control plane of a cluster renews its
certificates at a time. Run the command again if it was interrupted.

A super-admin.conf that you have removed is issued only if you name it.`,
		Example:           "  kube-bootstrap certs renew\n  kube-bootstrap certs renew apiserver etcd-server\n  kube-bootstrap certs renew super-admin.conf",
		ValidArgsFunction: completeRenewable,
	}
	life := c.Flags().Duration("lifetime", 0, "how long certificates are valid from now on, for tests")
	_ = c.Flags().MarkHidden("lifetime")
	c.RunE = func(c *cobra.Command, names []string) error {
		if len(names) == 0 {
			names = renewal.Present(host.Files{})
		}
		for _, name := range names {
			if !slices.Contains(renewal.Renewable(), name) {
				return exit.Usage(fmt.Errorf("%s: must be one of %s", name, strings.Join(renewal.Renewable(), ", ")))
			}
		}
		return renew(c.Context(), con, names, *life)
	}
	return c
}

func completeRenewable(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := renewal.Renewable()
	for _, name := range given {
		names = slices.DeleteFunc(names, func(one string) bool { return one == name })
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func renew(ctx context.Context, con *console.Console, names []string, life time.Duration) error {
	h, err := openControlPlane()
	if err != nil {
		return err
	}
	release, err := host.Lock(ctx, lockPath)
	if err != nil {
		return err
	}
	defer release()
	if err := renewal.Renews(h); err != nil {
		return err
	}
	if life != 0 {
		if err := renewal.SetLeafLife(h, life); err != nil {
			return exit.Usage(err)
		}
	}
	runner, err := con.BeginLogged("certs-renew")
	if err != nil {
		return err
	}
	started := time.Now()
	waits := time.AfterFunc(2*time.Second, func() { con.Say("wait until no other control plane renews certificates") })
	defer waits.Stop()
	err = renewal.Alone(ctx, h, func(ctx context.Context) error {
		waits.Stop()
		return runner.Do(ctx, renewal.Renewal(h, names))
	})
	if err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	con.Done(started, fmt.Sprintf("renewed %d certificates", len(names)))
	return nil
}
