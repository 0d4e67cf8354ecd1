// Package renewal renews the certificates of a host, and replaces the keys of a
// cluster.
package renewal

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Limit includes the wait for renewals of other control planes.
const Limit = 10 * time.Minute

// Renewal issues certificates of this control plane again, by the names of
// Certificates, and then has each program use them, one after the other. It
// also completes an interrupted renewal.
func Renewal(h *local.Host, names []string) step.Plan {
	p := parts.New(h, local.ControlPlane)
	return slices.Concat(
		step.InOrder(markRenewal(h.Files), p.ControlPlane.PKI.Renew(names), p.Etcd.StartAsMember(), startFlanneld(p.Network)),
		p.ControlPlane.StaticPods.UseRenewed(),
		step.InOrder(p.Node.Kubelet.Renew(names), endRenewal(h.Files)),
	).Within(h.Timeout())
}

// RenewDue renews the certificates of this host that have less than a third of their
// lifetime left.
func RenewDue(
	h *local.Host, certificates controlplane.PKI, join parts.Join, network parts.PodNetwork,
) step.Step {
	if h.Saved.Role != local.ControlPlane {
		return renewFlannel(join.FlannelCertificate(), startFlanneld(network))
	}
	return step.Step{
		ID: "renew-certificates", Name: "renew certificates",
		Check: func(context.Context) (step.Diff, error) {
			var diff step.Diff
			for _, name := range certificates.Due() {
				diff = append(diff, "renew "+name)
			}
			if len(diff) == 0 && h.Files.Exists(controlplane.RenewingFile) {
				diff = step.Diff{"finish a renewal that was interrupted"}
			}
			return diff, nil
		},
		Apply: func(ctx context.Context) error {
			return Alone(ctx, h, func(ctx context.Context) error {
				return (&step.Runner{}).Do(ctx, Renewal(h, certificates.Due()))
			})
		},
	}
}

// renewFlannel is RenewDue of a worker, which asks with its kubelet's identity.
func renewFlannel(fetch, start step.Step) step.Step {
	return step.Step{
		ID: "renew-flannel-certificate", Name: "renew flannel's certificate", Check: fetch.Check,
		Apply: func(ctx context.Context) error {
			return (&step.Runner{}).Do(ctx, step.Plan{{fetch}, {start}})
		},
	}
}

func startFlanneld(n parts.PodNetwork) step.Step { return n.OnDocker0(n.Flanneld.Start()) }

func markRenewal(files host.Files) step.Step {
	return files.Step("begin-renewal", "remember that certificates are renewed", func() ([]host.File, error) {
		return []host.File{{Path: controlplane.RenewingFile, Data: []byte("Certificates are being renewed.\n")}}, nil
	})
}

func endRenewal(files host.Files) step.Step {
	return step.When("end-renewal", "forget that certificates are renewed", "remove "+controlplane.RenewingFile,
		func(context.Context) (bool, error) { return files.Exists(controlplane.RenewingFile), nil },
		func(context.Context) error { return files.Remove(controlplane.RenewingFile) })
}

// Renews returns the problem that prevents a renewal of certificates [unfinished].
func Renews(files host.Files) error {
	if local.Complete(files) {
		return nil
	}
	return &step.Problem{
		Name: "unfinished", Firm: true, Text: "the last run of `kube-bootstrap master` on this host did not finish",
		Remedy: "run it again; it also issues the certificates that need it",
	}
}

// Renewable returns the names of the certificates that a control plane can renew.
func Renewable() []string { return renewable(func(pki.CertificateFile) bool { return true }) }

// Present returns the names of the certificates that a renewal without names
// issues. It omits the certificates that an administrator has removed.
func Present(files host.Files) []string {
	return renewable(func(held pki.CertificateFile) bool { return !removed(files, held) })
}

func renewable(which func(pki.CertificateFile) bool) (names []string) {
	for _, held := range heldBy(local.ControlPlane) {
		if held.RenewedBy != "" && which(held) {
			names = append(names, held.Name)
		}
	}
	return names
}

// Alone calls do while it holds a lock of the cluster, and once the API server of another
// control plane is ready. It calls do without the lock on a worker, on the only control
// plane, if a certificate has expired, because etcd may then refuse this host, or if an
// interrupted renewal has removed the API server's manifest: other control planes may
// wait for this one.
func Alone(ctx context.Context, h *local.Host, do func(context.Context) error) error {
	if !h.Files.Exists(controlplane.APIServerPod) || !parts.Several(h.Files, h.Config.Join) || expired(h.Files) {
		return do(ctx)
	}
	another := func(context.Context) error { return parts.AnotherServes(h.Files, h.IP()) }
	return parts.InForce(h).Etcd.Member.Alone(h.Limited(ctx), "renewal", func(ctx context.Context) error {
		if err := step.Until(h.Limited(ctx), another, nil); err != nil {
			return err
		}
		return do(ctx)
	})
}

func expired(files host.Files) bool {
	return slices.ContainsFunc(Certificates(files, local.ControlPlane), func(one pki.CertificateStatus) bool {
		return one.Problem == "expired"
	})
}

// SetLeafLife sets how long the certificates that this host issues are valid.
func SetLeafLife(files host.Files, life time.Duration) error {
	if err := controlplane.ValidLeafLife(life); err != nil {
		return fmt.Errorf("--lifetime: %w", err)
	}
	return controlplane.SetLeafLife(files, life)
}

// Certificates lists the certificates on a host of the role, authorities
// first. It needs no settings, so that it works when they are lost.
func Certificates(files host.Files, role string) []pki.CertificateStatus {
	all, now := []pki.CertificateStatus{}, time.Now()
	for _, one := range heldBy(role) {
		if !removed(files, one) {
			all = append(all, one.Inspect(files.Read, now))
		}
	}
	return all
}

func removed(files host.Files, one pki.CertificateFile) bool {
	return one.Optional && !files.Exists(one.Path)
}

func heldBy(role string) []pki.CertificateFile {
	switch role {
	case local.ControlPlane:
		return append(controlplane.Held(), kubelet.Held()...)
	case local.Worker:
		return append(join.Held(), kubelet.Held()...)
	}
	return nil
}
