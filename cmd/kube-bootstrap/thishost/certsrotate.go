package thishost

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
)

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
--user", no longer open the API at the end.

Tokens that the old service account key has signed are valid until the kubelets
have replaced them, after about an hour. The command does not wait for that. Run
it again after the time that it prints to drop the old key.`,
		Example: `  kube-bootstrap certs rotate --ca
  kube-bootstrap certs rotate --encryption-key
  kube-bootstrap certs rotate --service-account-key`,
		Args: cobra.NoArgs,
	}
	encryption := c.Flags().Bool(controlplane.EncryptionKey, false, "the key that encrypts Secrets in etcd; encrypts all of them with the new one")
	account := c.Flags().Bool(controlplane.AccountKey, false, "the key that signs the tokens of service accounts")
	authorities := c.Flags().Bool(controlplane.Authorities, false, "the certificate authorities of the cluster, and all certificates that they have signed")
	now := c.Flags().Bool("now", false, "drop the old service account key now: pods get no answer from the API until the kubelet has replaced their tokens")
	subjects := map[string]*bool{controlplane.EncryptionKey: encryption, controlplane.AccountKey: account, controlplane.Authorities: authorities}
	c.RunE = func(c *cobra.Command, _ []string) error {
		var given []string
		for subject, set := range subjects {
			if *set {
				given = append(given, subject)
			}
		}
		if len(given) != 1 {
			return exit.Usage(errors.New("state what to replace, with one of --ca, --encryption-key and --service-account-key"))
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
	until, err := renewal.RotationWaits(ctx, h, subject)
	if err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	if !until.IsZero() && !dropNow {
		con.End()
		con.Warn(fmt.Sprintf("all control planes use the new %s, after %s; run the same command again after %s to drop the old one",
			rotation.Title(subject), progress.Took(time.Since(started)), until.Local().Format(time.DateTime)))
		return nil
	}
	if err := runner.Do(ctx, renewal.EndRotation(h, subject)); err != nil {
		return exit.Resume(err, exit.RunAgain)
	}
	con.Done(started, "rotated the "+rotation.Title(subject))
	if subject == controlplane.Authorities {
		con.Warn("client certificates of the old authority no longer open the API: copy /etc/kubernetes/admin.conf again, and give users new kubeconfigs")
		con.Warn("bootstrap tokens were deleted; create new ones with `kube-bootstrap token create`")
	}
	return nil
}
