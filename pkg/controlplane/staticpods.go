package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StaticPods are the API server, the controller manager and the scheduler of a
// host, and what they read besides certificates.
type StaticPods struct {
	Host
	PodCIDR           netip.Prefix                // to be cut up for the nodes; not valid: something else does that
	Image             func(program string) string // that a component runs from: hyperkube, or one of its own
	KubernetesVersion string                      // "v1.36.3", which the pods are labelled with
	EtcdEndpoints     []string
	Single            bool // no other control plane: no leader election, which costs seconds
	ExtraArgs         func(program string) config.Arguments
	OIDC              config.OIDC
	AuditPolicy       string // the user's, as JSON; "": our own
}

// Early writes the pods of the control plane where the kubelet finds
// them, and what they read. Others come later, see Late.
func (s StaticPods) Early() step.Step {
	return step.Step{
		Name: "write the static pods",
		Check: func(context.Context) (step.Diff, error) {
			reads, pods, err := s.podFiles()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{"write the pods in " + ManifestDir}, nil // what they read is not there yet
			}
			if err != nil {
				return nil, err
			}
			diff, err := s.Files.Missing(append(reads, pods...))
			if !s.Files.Exists(auditDir) {
				diff = append(diff, "make "+auditDir)
			}
			return diff, err
		},
		Apply: func(ctx context.Context) error {
			if err := s.Files.MkdirAll(auditDir); err != nil {
				return err
			}
			reads, pods, err := s.podFiles()
			if err != nil {
				return err
			}
			if err := s.Files.Put(reads); err != nil {
				return err
			}
			return exchange(ctx, s.Files, pods)
		},
		Undo: s.removePods,
	}
}

// podFiles lists what the pods read, which must be there before them, as the
// kubelet starts a pod as soon as it sees it.
func (s StaticPods) podFiles() (reads, pods []host.File, err error) {
	if reads, err = s.apiserverFiles(); err != nil {
		return nil, nil, err
	}
	all := []component{s.apiserver(reads)}
	if !s.Joins {
		all = append(all, s.manager())
	}
	authorization, err := authorizationFiles(s.Files)
	if err != nil {
		return nil, nil, err
	}
	pods, err = s.podsOf(all)
	return append(reads, authorization...), pods, err
}

func (s StaticPods) podsOf(pods []component) ([]host.File, error) {
	var tree []host.File
	for _, pod := range pods {
		data, err := s.manifest(pod)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", pod.name, err)
		}
		tree = append(tree, host.File{Path: podPath(pod.name), Data: data})
	}
	return tree, nil
}

// Late writes the static pods that wait for the API server to be ready: a
// scheduler that asks before it has its rights in a new cluster is refused, and
// asks again only seconds later. On a further control plane also the controller
// manager's, which must not work before the others share with it.
func (s StaticPods) Late() step.Step {
	name := "write the static pod of the scheduler"
	if s.Joins {
		name += " and of the controller manager"
	}
	tree := func() ([]host.File, error) {
		pods := []component{s.scheduler()} // what they read is there by now
		if s.Joins {
			pods = append(pods, s.manager())
		}
		return s.podsOf(pods)
	}
	return step.Step{
		Name: name,
		Check: func(context.Context) (step.Diff, error) {
			files, err := tree()
			if err != nil {
				return nil, err
			}
			return s.Files.Missing(files)
		},
		Apply: func(ctx context.Context) error {
			files, err := tree()
			if err != nil {
				return err
			}
			return exchange(ctx, s.Files, files)
		},
		Undo: func(context.Context) error { return s.Files.Drop(podPath("kube-scheduler")) },
	}
}

func (s StaticPods) removePods(context.Context) error {
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		if err := s.Files.Remove(podPath(name)); err != nil {
			return err
		}
	}
	if err := s.Files.Drop(auditFile, admissionFile, authenticationFile, authorizationFile, nobodyFile); err != nil {
		return err
	}
	return s.Files.RemoveAll(auditDir)
}
