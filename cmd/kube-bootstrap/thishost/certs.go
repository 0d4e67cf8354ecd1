package thishost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func certsCommand(con *console.Console) *cobra.Command {
	return command.Parent("certs", "List, renew and rotate certificates and keys", certsList(con.Out), certsRenew(con),
		certsRotate(con))
}

func certsList(out io.Writer) *cobra.Command {
	return output.ListCommand(&cobra.Command{
		Use:   "list",
		Short: "List the certificates of this host with their expiry and what renews them",
		Long: `List the certificates of this host with their expiry and what renews them. On a
control plane this includes the certificate authorities of the cluster. A
kubeconfig is listed if it contains a certificate.`,
		Example: "  kube-bootstrap certs list\n  kube-bootstrap certs list -o json",
	}, out, "Certificate", certificateColumns, certificatesHere)
}

var certificateColumns = []output.Column[pki.CertificateStatus]{
	{Head: "NAME", Cell: func(c pki.CertificateStatus) string { return c.Name }},
	{Head: "SIGNER", Cell: func(c pki.CertificateStatus) string { return c.Signer }},
	{Head: "EXPIRES", Cell: expires},
	{Head: "LEFT", Cell: left},
	{Head: "RENEWED BY", Cell: func(c pki.CertificateStatus) string { return cmp.Or(c.RenewedBy, "nobody") }},
	{Head: "PURPOSE", Cell: func(c pki.CertificateStatus) string { return c.Purpose }},
	{Head: "PATH", Cell: func(c pki.CertificateStatus) string { return c.Path }, Wide: true},
}

func certificatesHere(context.Context) ([]pki.CertificateStatus, error) {
	saved, err := savedSettings()
	if err != nil {
		return nil, err
	}
	if !saved.Installed() {
		return nil, &step.Problem{Name: "role", Text: "this host is not part of a cluster, so it has no certificates",
			Firm:   true,
			Remedy: "run this on a host where `kube-bootstrap master` or `kube-bootstrap worker` has run"}
	}
	return renewal.Certificates(host.Files{}, saved.Role), nil
}

func expires(one pki.CertificateStatus) string {
	if one.Expires.IsZero() {
		return "unknown"
	}
	return one.Expires.Local().Format(time.DateTime)
}

// left is how long a certificate is still valid, in days unless that says too little.
func left(one pki.CertificateStatus) string {
	switch {
	case one.Problem != "":
		return one.Problem
	case one.DaysLeft >= 2:
		return fmt.Sprintf("%d days", one.DaysLeft)
	}
	return progress.Took(time.Until(one.Expires))
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
		Example: "  kube-bootstrap certs renew\n  kube-bootstrap certs renew apiserver etcd-server\n  kube-bootstrap " +
			"certs renew super-admin.conf",
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			left := slices.DeleteFunc(renewal.Renewable(),
				func(name string) bool { return slices.Contains(given, name) })
			return left, cobra.ShellCompDirectiveNoFileComp
		},
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
	if err := renewal.Renews(h.Files); err != nil {
		return err
	}
	if life != 0 {
		if err := renewal.SetLeafLife(h.Files, life); err != nil {
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

func certsRotate(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate",
		Short: "Replace a key or the certificate authorities of a running cluster",
		Long: `Replace a key that all control planes have, while the cluster runs. All control
planes first accept the new key in addition to the old one, then use the new key,
and finally drop the old one. The agents of the control planes do this, one
control plane at a time, and this command waits for them. If it is interrupted, run it
again on any control plane: it continues. The API server of each control plane
restarts several times. The API answers all the time if there are several control
planes; a single one is away for about 20 seconds at each restart.

With --ca, it replaces all certificate authorities of the cluster, with all
certificates that they have signed. Workers are included: if a host is off, the
command names it and keeps the old authorities. Bootstrap tokens are deleted, and client
certificates of users, as in copies of admin.conf and those of "kubeconfig
--user", give no access to the API at the end.

Tokens that the old service account key has signed are valid until the kubelets
have replaced them, after about an hour. The command does not wait for that. Run
it again after the time that it prints to drop the old key.`,
		Example: `  kube-bootstrap certs rotate --ca
  kube-bootstrap certs rotate --encryption-key
  kube-bootstrap certs rotate --service-account-key`,
	}
	subjects := map[string]*bool{
		controlplane.EncryptionKey: c.Flags().Bool(controlplane.EncryptionKey, false,
			"the key that encrypts Secrets in etcd; encrypts all of them with the new one"),
		controlplane.AccountKey: c.Flags().Bool(controlplane.AccountKey, false,
			"the key that signs the tokens of service accounts"),
		controlplane.Authorities: c.Flags().Bool(controlplane.Authorities, false,
			"the certificate authorities of the cluster, and all certificates that they have signed"),
	}
	now := c.Flags().Bool("now", false,
		"drop the old service account key now: pods get no answer from the API until the kubelet has replaced "+
			"their tokens")
	c.RunE = func(c *cobra.Command, _ []string) error {
		maps.DeleteFunc(subjects, func(_ string, given *bool) bool { return !*given })
		given := slices.Collect(maps.Keys(subjects))
		if len(given) != 1 {
			return exit.Usage(errors.New("state what to replace, with one of --ca, --encryption-key and " +
				"--service-account-key"))
		}
		return rotate(c.Context(), con, given[0], *now)
	}
	return c
}

// rotate does not take the lock of the host, which the agent needs to follow.
func rotate(ctx context.Context, con *console.Console, subject string, dropNow bool) error {
	h, err := openControlPlane()
	if err != nil {
		return err
	}
	if err := renewal.Rotates(ctx, h, subject); err != nil {
		return err
	}
	runner, err := con.BeginLogged("certs-rotate")
	if err != nil {
		return err
	}
	started := time.Now()
	if err := runner.Do(ctx, renewal.Rotation(h, subject)); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	until, err := renewal.RotationWaits(ctx, parts.InForce(h).Cluster)
	if err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	if !until.IsZero() && !dropNow {
		con.End()
		con.Warn(fmt.Sprintf("all control planes use the new %s, after %s; run the same command again after %s to "+
			"drop the old one",
			rotation.Title(subject), progress.Took(time.Since(started)), until.Local().Format(time.DateTime)))
		return nil
	}
	if err := runner.Do(ctx, renewal.EndRotation(h, subject)); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	con.Done(started, "rotated the "+rotation.Title(subject))
	if subject == controlplane.Authorities {
		con.Warn("client certificates of the old authority no longer give access to the API: copy " +
			"/etc/kubernetes/admin.conf again, and give users new kubeconfigs")
		con.Warn("bootstrap tokens were deleted; create new ones with `kube-bootstrap token create`")
	}
	return nil
}
