package renewal

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

var (
	// State is the state of a rotation as the agent of a control plane reads it.
	State = rotation.StateStore{API: kube.Kubeconfig(controlplane.AgentConf)}
	// WorkerState is the state of a rotation as the kubelet of a host may read it, and
	// write that of its own node.
	WorkerState = rotation.StateStore{API: kube.Kubeconfig(kubelet.Kubeconfig)}
)

// FollowRotation is the step with which an agent reaches the phase of a rotation.
func FollowRotation(h *local.Host) step.Step {
	return step.Step{
		ID: "follow-rotation", Name: "follow a rotation",
		Check: func(ctx context.Context) (step.Diff, error) {
			t, err := toFollow(ctx, h)
			if err != nil || t == nil {
				return nil, kube.NoAnswer(err)
			}
			return step.Diff{t.Rotation.String()}, nil
		},
		Apply: func(ctx context.Context) error {
			return Alone(ctx, h, func(ctx context.Context) error {
				t, err := toFollow(ctx, h)
				if err != nil || t == nil {
					return err
				}
				if err := (&step.Runner{}).Do(ctx, rotate(h, *t)); err != nil {
					return err
				}
				return WorkerState.Notes().Note(ctx, t.Rotation.Rollout(), h.Config.HostName)
			})
		},
	}
}

// toFollow returns the rotation whose phase this host has not reached, nil if there
// is none. Only a worker gets the authorities too.
func toFollow(ctx context.Context, h *local.Host) (*rotation.Trust, error) {
	if h.Saved.Role != local.ControlPlane {
		return trustToFollow(ctx, h.Files, h.Config.HostName)
	}
	r, err := State.Read(ctx)
	if err != nil || r == nil {
		return nil, err
	}
	behind, err := State.Notes().Behind(ctx, r.Rollout(), []string{h.Config.HostName})
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	return &rotation.Trust{Rotation: *r}, nil
}

// trustToFollow is toFollow of a worker. Every node can read what is signed, so somebody
// may publish it again after the rotation.
func trustToFollow(ctx context.Context, files host.Files, name string) (*rotation.Trust, error) {
	t, err := WorkerState.ReadTrust(ctx, func(text, signature []byte) bool {
		trusted, err := files.Read(join.ClusterCAFile)
		return err == nil && pki.Vouched(trusted, text, signature)
	})
	if err != nil || t == nil {
		return nil, err
	}
	behind, err := WorkerState.Notes().Behind(ctx, t.Rotation.Rollout(), []string{name})
	if err != nil || len(behind) == 0 {
		return nil, err
	}
	passed, err := WorkerState.Notes().Passed(ctx, t.Rotation.Rollout(), name)
	if err != nil {
		return nil, err
	}
	if passed || bringsBack(files, *t) {
		return nil, fmt.Errorf("ConfigMap kube-system/%s: it contains the rotation of %s, which is over on this host; "+
			"remove the ConfigMap", rotation.TrustName, t.Rotation.ID)
	}
	return t, nil
}

// bringsBack reports whether a host would trust an authority again that it has dropped,
// or never had because it joined later. Only the first phase adds authorities.
func bringsBack(files host.Files, t rotation.Trust) bool {
	if t.Rotation.Phase == rotation.Accept {
		return false
	}
	for path, published := range map[string][]byte{join.ClusterCAFile: t.ClusterCA, join.EtcdCAFile: t.EtcdCA} {
		trusted, err := files.Read(path)
		if err != nil || !pki.Includes(trusted, published) {
			return true
		}
	}
	return false
}

// rotate has the files of this host contain the keys of a phase, and then its
// programs use them, one after the other.
func rotate(h *local.Host, t rotation.Trust) step.Plan {
	p := parts.InForce(h)
	flanneld, keepHash := startFlanneld(p.Network), keepHash(h.Files, h.Saved.Config)
	if h.Saved.Role != local.ControlPlane {
		plan := step.InOrder(trustFiles(h.Files, t), p.Join.FlannelCertificate(), flanneld)
		return append(plan, kubeletFollows(p.Node.Kubelet, keepHash, t.Rotation)...).Within(h.Timeout())
	}
	// The mark of a renewal has the agent finish that if it is interrupted, even
	// while no API server runs.
	plan := step.InOrder(markRenewal(h.Files), controlplane.Rotate(h.Files, t.Rotation), p.ControlPlane.PKI.Reissue(),
		p.Etcd.StartAsMember(), flanneld)
	plan = append(plan, p.ControlPlane.StaticPods.UseRenewed()...)
	plan = append(plan, p.Addons.Contained()) // metrics-server trusts the authority of kubelets
	plan = append(plan, kubeletFollows(p.Node.Kubelet, keepHash, t.Rotation)...)
	return append(plan, []step.Step{endRenewal(h.Files)}).Within(h.Timeout())
}

func trustFiles(files host.Files, t rotation.Trust) step.Step {
	return files.Step("rotated-files", t.Rotation.String(), func() ([]host.File, error) {
		return []host.File{
			{Path: join.ClusterCAFile, Data: t.ClusterCA, Mode: 0o644},
			{Path: join.EtcdCAFile, Data: t.EtcdCA, Mode: 0o644},
		}, nil
	})
}

// kubeletFollows returns the steps with which the kubelet of this host reaches a
// phase of a rotation of the authorities.
func kubeletFollows(k kubelet.Kubelet, keepHash step.Step, r rotation.Rotation) step.Plan {
	if r.Subject != rotation.Authorities {
		return nil
	}
	plan := step.Plan{{keepHash}, {k.FollowAuthority()}}
	if r.Phase == rotation.Use {
		plan = append(plan, []step.Step{k.Renew([]string{kubelet.Serving})})
	}
	return append(plan, []step.Step{k.Start()})
}

// keepHash is the step with which a host that has joined knows its cluster by the
// authority that signs now.
func keepHash(files host.Files, cfg config.Config) step.Step {
	if cfg.CACertHash == "" {
		return step.Step{}
	}
	return files.Step("keep-ca-hash", "keep the hash of the certificate authority", func() ([]host.File, error) {
		ca, err := files.Read(join.ClusterCAFile)
		if err != nil {
			return nil, err
		}
		cfg := cfg
		if cfg.CACertHash, err = join.CAHashOf(ca); err != nil {
			return nil, err
		}
		data, err := file.Marshal(cfg)
		return []host.File{{Path: config.SavedPath, Data: data}}, err
	})
}
