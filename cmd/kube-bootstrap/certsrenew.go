package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
)

func (p *program) certsRenew() *cobra.Command {
	c := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Issue certificates of this control plane again, and have its programs use them",
		Long: `Issue certificates of this control plane again, by the names of "certs list", or
all of them. The programs that read them only when they start are started again,
one after the other: etcd, flanneld, the controller manager, the scheduler and
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
				return &usageError{fmt.Errorf("%s: must be one of %s", name, strings.Join(renewal.Renewable(), ", "))}
			}
		}
		return p.renew(c.Context(), names, *life)
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

func (p *program) renew(ctx context.Context, names []string, life time.Duration) error {
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
			return &usageError{err}
		}
	}
	runner, err := p.begin()
	if err != nil {
		return err
	}
	started := time.Now()
	waits := time.AfterFunc(2*time.Second, func() { p.say("wait until no other control plane renews certificates") })
	defer waits.Stop()
	err = renewal.Alone(ctx, h, func(ctx context.Context) error {
		waits.Stop()
		return runner.Do(ctx, renewal.Renewal(h, names))
	})
	if err != nil {
		return &resumeError{err, "run the same command again to finish"}
	}
	p.endProgress()
	p.say(fmt.Sprintf("renewed %d certificates, in %s", len(names), progress.Took(time.Since(started))))
	return nil
}
