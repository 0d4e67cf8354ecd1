package main

import (
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func (p *program) certsCommand() *cobra.Command {
	return parent("certs", "List, renew and rotate certificates and keys", p.certsList(), p.certsRenew(), p.certsRotate())
}

func (p *program) certsList() *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List the certificates of this host, when each expires and who renews it",
		Long: `List the certificates of this host, when each expires and who renews it. On a
control plane this includes the certificate authorities of the cluster. A
kubeconfig is listed if it contains a certificate.`,
		Example: "  kube-bootstrap certs list\n  kube-bootstrap certs list -o json",
		Args:    cobra.NoArgs,
	}
	format := addOutput(c)
	c.RunE = func(*cobra.Command, []string) error {
		if err := checkOutput(*format); err != nil {
			return err
		}
		all, err := certificatesHere()
		if err != nil {
			return err
		}
		return p.print(*format, all, func(w io.Writer) {
			cells(w, "NAME", "SIGNER", "EXPIRES", "LEFT", "RENEWED BY", "PURPOSE")
			for _, one := range all {
				cells(w, one.Name, one.Signer, expires(one), left(one), renewedBy(one), one.Purpose)
			}
		})
	}
	return c
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
