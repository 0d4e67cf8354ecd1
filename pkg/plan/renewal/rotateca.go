package renewal

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// WorkerState is the state of a rotation of the authorities as the agent of a worker
// reads and writes it.
var WorkerState = rotation.Store{API: kube.Kubeconfig(kubelet.Kubeconfig)}

// followTrust is followRotation of a worker. It asks with its kubelet's identity.
func followTrust(h *local.Host) step.Step {
	return step.Step{
		Name: "follow a rotation",
		Check: func(ctx context.Context) (step.Diff, error) {
			t, err := toTrust(ctx, h)
			if err != nil || t == nil {
				return nil, kube.NoAnswer(err)
			}
			return step.Diff{t.Rotation.String()}, nil
		},
		Apply: func(ctx context.Context) error {
			t, err := toTrust(ctx, h)
			if err != nil || t == nil {
				return err
			}
			if err := (&step.Runner{}).Do(ctx, rotateWorker(h, *t)); err != nil {
				return err
			}
			return WorkerState.Note(ctx, t.Rotation, h.Config.HostName)
		},
	}
}

// toTrust returns the phase that this worker has not reached; nil if there is none.
func toTrust(ctx context.Context, h *local.Host) (*rotation.Trust, error) {
	t, err := WorkerState.ReadTrust(ctx, func(text, signature []byte) bool {
		trusted, err := h.Files.Read(join.ClusterCAFile)
		return err == nil && pki.Vouched(trusted, text, signature)
	})
	if err != nil || t == nil {
		return nil, err
	}
	behind, err := WorkerState.Behind(ctx, t.Rotation, []string{h.Config.HostName})
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	return t, nil
}

// rotateWorker has this worker trust the authorities of a phase, and requests
// certificates of the first ones.
func rotateWorker(h *local.Host, t rotation.Trust) step.Plan {
	plan := step.Plan{{trustFiles(h, t)}, {parts.FlannelCertificate(h)}, {parts.OnDocker0(h, parts.Flanneld(h).Start())}}
	return append(plan, kubeletFollows(h, t.Rotation)...).Compact().Within(h.Timeout())
}

func trustFiles(h *local.Host, t rotation.Trust) step.Step {
	return h.Files.Step(t.Rotation.String(), func() ([]host.File, error) {
		return []host.File{
			{Path: join.ClusterCAFile, Data: t.ClusterCA, Mode: 0o644},
			{Path: join.EtcdCAFile, Data: t.EtcdCA, Mode: 0o644},
		}, nil
	})
}

// kubeletFollows returns the steps with which the kubelet of this host reaches a
// phase of a rotation of the authorities.
func kubeletFollows(h *local.Host, r rotation.Rotation) step.Plan {
	if r.Subject != rotation.Authorities {
		return nil
	}
	k := parts.Kubelet(h, h.Saved.Role)
	plan := step.Plan{{keepHash(h)}, {k.FollowAuthority()}}
	if r.Phase == rotation.Use {
		plan = append(plan, []step.Step{k.Renew([]string{kubelet.Serving})})
	}
	return append(plan, []step.Step{k.Start()})
}

// keepHash is the step with which a host that has joined knows its cluster by the
// authority that signs now.
func keepHash(h *local.Host) step.Step {
	if h.Saved.Config.CACertHash == "" {
		return step.Step{}
	}
	return h.Files.Step("keep the hash of the certificate authority", func() ([]host.File, error) {
		ca, err := h.Files.Read(join.ClusterCAFile)
		if err != nil {
			return nil, err
		}
		cfg := h.Saved.Config
		if cfg.CACertHash, err = join.CAHashOf(ca); err != nil {
			return nil, err
		}
		data, err := file.Marshal(cfg)
		return []host.File{{Path: config.SavedPath, Data: data}}, err
	})
}

// followers returns the hosts that follow a rotation of a subject.
func followers(h *local.Host, subject string) hostNames {
	if subject == rotation.Authorities {
		return nodeNames
	}
	return parts.ControlPlaneNames(h)
}

func nodeNames(ctx context.Context) ([]string, error) {
	return node.Names(ctx, State.API, func(*corev1.Node) bool { return true })
}

func workerNames(h *local.Host) hostNames {
	return func(ctx context.Context) ([]string, error) {
		controlPlanes, err := parts.ControlPlaneNames(h)(ctx)
		if err != nil {
			return nil, err
		}
		all, err := nodeNames(ctx)
		return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(controlPlanes, name) }), err
	}
}

// reachWorkers has all workers reach a phase that the control planes have reached.
func (r rotating) reachWorkers(phase rotation.Phase) []step.Step {
	name := "have every worker " + phase.Of(r.subject)
	return []step.Step{{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			if err != nil || now.Phase > phase {
				return nil, err
			}
			names, err := r.behind(ctx, now, workerNames(r.Host))
			if err != nil || now.Phase == phase && len(names) == 0 {
				return nil, err
			}
			return step.Diff{name + ": " + strings.Join(names, ", ")}, nil
		},
		Waits: true,
		Apply: func(ctx context.Context) error {
			if err := r.publishTrust(ctx); err != nil {
				return err
			}
			return r.await(ctx, phase, workerNames(r.Host))
		},
	}}
}

// publishTrust tells the workers what this control plane trusts.
func (r rotating) publishTrust(ctx context.Context) error {
	now, err := r.current(ctx)
	if err != nil {
		return err
	}
	t := rotation.Trust{Rotation: now}
	if t.ClusterCA, err = r.Files.Read(join.ClusterCAFile); err != nil {
		return err
	}
	if t.EtcdCA, err = r.Files.Read(join.EtcdCAFile); err != nil {
		return err
	}
	signer, err := controlplane.Signer(r.Files)
	if err != nil {
		return err
	}
	return r.store.WriteTrust(ctx, t, signer.SignText)
}

// dropTokens deletes the bootstrap tokens: the commands that were printed with
// them contain the hash of the old authority. Until the end of the rotation, no
// others are created.
func (r rotating) dropTokens() step.Step {
	const name = "delete the bootstrap tokens of the old authority"
	tokens := func(ctx context.Context, do func(join.Token) error) error {
		now, err := r.current(ctx)
		if err != nil || now.Phase > rotation.Accept {
			return err
		}
		client, err := r.store.API.Client()
		if err != nil {
			return err
		}
		all, err := join.ListTokens(ctx, client)
		for _, token := range all {
			if err := do(token); err != nil {
				return err
			}
		}
		return err
	}
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (diff step.Diff, err error) {
			err = tokens(ctx, func(t join.Token) error {
				diff = append(diff, "delete token "+t.ID)
				return nil
			})
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			client, err := r.store.API.Client()
			if err != nil {
				return err
			}
			return tokens(ctx, func(t join.Token) error { return join.DeleteToken(ctx, client, t.ID) })
		},
	}
}
