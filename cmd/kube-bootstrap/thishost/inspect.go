package thishost

import (
	"context"
	"errors"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func inspectHost(ctx context.Context) (Status, error) {
	status := Status{Steps: []stepStatus{}}
	saved, err := savedSettings()
	if err != nil || saved.Role == "" {
		return status, err
	}
	h, made, err := installed(saved.Config.KeepImages)
	if err != nil {
		return status, err
	}
	p := parts.New(h, saved.Role)
	status.inspectSettings(h, saved)
	status.inspectCertificates()
	// Without a quorum most checks get no answer, so stop them early.
	looking, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var others sync.WaitGroup
	others.Go(func() {
		status.Etcd = membersOf(h.Limited(ctx), p.Etcd.Member, saved.Role)
		if err := etcd.Quorum(status.Etcd); err != nil {
			status.Quorum = err.Error()
			stop(errors.New("no answer, as etcd has no quorum"))
		}
	})
	status.inspectOthers(looking, &others, h, p)
	for _, f := range (&step.Runner{}).Check(looking, made) {
		one := stepStatusOf(f, saved.Lost)
		status.UpToDate = status.UpToDate && one.UpToDate
		status.Steps = append(status.Steps, one)
	}
	others.Wait()
	if h.Upgrade.Begun() {
		status.Upgrade = &h.Upgrade
	}
	status.Programs, status.ControlPlanes = h.Programs(), parts.ControlPlanes(h.Files)
	return status, ctx.Err()
}

func (s *Status) inspectSettings(h *local.Host, saved local.Saved) {
	s.Host, s.Repairs = identityOf(h), agent.Repairs(host.Files{})
	s.Role, s.UpToDate, s.SettingsLost = saved.Role, saved.Lost == nil, textOf(saved.Lost)
	if saved.Installed() && saved.Lost == nil {
		s.Address = textOf(preflight.AddressProblem(h))
		s.UpToDate = s.UpToDate && s.Address == ""
	}
}

// inspectOthers starts the checks of what is not a step of this host.
func (s *Status) inspectOthers(ctx context.Context, running *sync.WaitGroup, h *local.Host, p parts.Parts) {
	running.Go(func() { s.Docker = textOf(preflight.DockerProblems(ctx, p.Docker, p.Network.Reserved())) })
	running.Go(func() { s.NetworkPolicy = textOf(plan.UnenforcedPolicies(ctx, h)) })
	if h.Saved.Installed() {
		running.Go(func() { s.UpgradeLock = plan.UpgradeLock(h).Held(h.Limited(ctx)) })
	}
	if s.Role == local.ControlPlane {
		running.Go(func() { s.NodesExpired = textOf(membership.ExpiredNodes(h.Limited(ctx), p.Etcd)) })
		running.Go(func() { s.Rotation = renewal.UnderWay(h.Limited(ctx), h) })
		// Another check reports that etcd or the API server does not answer.
		running.Go(func() { s.Backups, _ = recovery.StatusOf(ctx, h, recovery.Schedules) })
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func (s *Status) inspectCertificates() {
	all := renewal.Certificates(host.Files{}, s.Role)
	s.NextExpiry = pki.FirstToExpire(all)
	if err := pki.ExpiryProblem(all); err != nil {
		s.CertificateExpiry, s.UpToDate = err.Error(), false
	}
}
