package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
)

func (p *program) certsRotate() *cobra.Command {
	c := &cobra.Command{
		Use:   "rotate --encryption-key",
		Short: "Replace a key that all control planes have, without an outage",
		Long: `Replace a key that all control planes have, without an outage. All control planes
first accept the new key as well as the old one, then use the new key, and at
last drop the old one. The agents of the control planes do that, one control
plane at a time, and this command waits for them. If it is interrupted, run it
again on any control plane: it continues.`,
		Example: "  kube-bootstrap certs rotate --encryption-key",
		Args:    cobra.NoArgs,
	}
	asked := map[string]*bool{
		controlplane.EncryptionKey: c.Flags().Bool(controlplane.EncryptionKey, false, "the key that encrypts Secrets in etcd; encrypts all of them with the new one"),
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		for subject, is := range asked {
			if *is {
				return p.rotate(c.Context(), subject)
			}
		}
		return &usageError{errors.New("say what to replace: --" + controlplane.EncryptionKey)}
	}
	return c
}

// rotate does not take the lock of the host, which the agent needs to follow.
func (p *program) rotate(ctx context.Context, subject string) error {
	h, err := openControlPlane()
	if err != nil {
		return err
	}
	if err := h.Rotates(ctx, subject); err != nil {
		return err
	}
	runner, err := p.begin()
	if err != nil {
		return err
	}
	started := time.Now()
	if err := runner.Do(ctx, h.Rotation(subject)); err != nil {
		return &resumeError{err, "run the same command again to finish"}
	}
	p.endProgress()
	p.say(fmt.Sprintf("rotated the %s, in %s", rotation.Title(subject), took(time.Since(started))))
	return nil
}
