package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StaticPods are the API server, the controller manager and the scheduler of a
// host, and what they read besides certificates.
type StaticPods struct {
	HostSettings
	// network that the controller manager divides among nodes; invalid: it assigns no subnets
	PodCIDR           netip.Prefix
	Image             func(program string) string // that a component runs from: hyperkube, or one of its own
	KubernetesVersion string                      // "v1.36.3", which the pods are labelled with
	EmulatedVersion   string                      // "1.36", that an unfinished upgrade emulates; "": none
	EtcdEndpoints     []string
	Single            bool // no other control plane: no leader election, which costs seconds
	ExtraArgs         func(program string) config.Arguments
	OIDC              config.OIDC
	AuditPolicy       string // the user's, as JSON; "": our own
}

// Alone reports whether the API server is the only one of its cluster. Unlike Single, it stays false when the other
// control planes leave: the change would restart the only API server.
func (s StaticPods) Alone() bool { return len(s.EtcdEndpoints) == 1 }

// WriteAPIServer writes the static pod of the API server where the kubelet finds it, and what
// it reads. The others come later, see Late.
func (s StaticPods) WriteAPIServer() step.Step {
	return step.Step{
		ID: "apiserver-pod", Name: "write the static pod of the API server",
		Check: func(context.Context) (step.Diff, error) {
			reads, pods, err := s.podFiles()
			if errors.Is(err, fs.ErrNotExist) {
				return step.Diff{"write the pod in " + ManifestDir}, nil // what they read is not there yet
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
		Undo: func(context.Context) error {
			// The pod is removed first, because it reads the files.
			if err := s.Files.Remove(APIServerPod); err != nil {
				return err
			}
			err := s.Files.Drop(auditFile, admissionFile, authenticationFile, authorizationFile, nobodyFile)
			return errors.Join(err, s.Files.RemoveAll(auditDir))
		},
	}
}

// podFiles lists what the API server reads, which must be there before its pod, as
// the kubelet starts a pod as soon as it sees it.
func (s StaticPods) podFiles() (reads, pods []host.File, err error) {
	if reads, err = s.apiserverFiles(); err != nil {
		return nil, nil, err
	}
	authorization, err := authorizationFiles(s.Files)
	if err != nil {
		return nil, nil, err
	}
	pods, err = s.podsOf(s.apiserver(reads))
	return append(reads, authorization...), pods, err
}

func (s StaticPods) podsOf(pods ...component) (tree []host.File, err error) {
	for _, pod := range pods {
		data, err := s.manifest(pod)
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", pod.name, err)
		}
		tree = append(tree, host.File{Path: podPath(pod.name), Data: data})
	}
	return tree, nil
}

// IDs of Late and LateInNewCluster.
const (
	ControllersID             step.ID = "controllers"
	ControllersInNewClusterID step.ID = "controllers-in-new-cluster"
)

// WriteControllers writes the static pods of the scheduler and the controller manager. A scheduler
// without its rights is refused, and asks again only seconds later. A controller manager
// looks only once per second whether the API server is ready. On a joining control
// plane, neither may start before the other control planes use leader election.
func (s StaticPods) WriteControllers() step.Step {
	// What they read is there by now.
	pods := func() ([]host.File, error) { return s.podsOf(s.manager(), s.scheduler()) }
	controllers := s.podStep(ControllersID, "write the static pods of the scheduler and the controller manager", pods)
	controllers.Undo = func(context.Context) error {
		return s.Files.Drop(podPath("kube-scheduler"), podPath("kube-controller-manager"))
	}
	return controllers
}

// ControllersMissing reports whether a static pod of Late has no manifest: it was not written
// yet, or an exchange was killed after it had removed the manifests.
func ControllersMissing(files host.Files) bool {
	return !files.Exists(podPath("kube-controller-manager")) || !files.Exists(podPath("kube-scheduler"))
}

// WriteControllersInNewCluster is Late for the first control plane, which need not wait until the
// API server is ready: it writes the pods as soon as the API server creates the rights
// of its components. By the time the pods ask, these rights are complete.
func (s StaticPods) WriteControllersInNewCluster(p PKI) step.Step {
	controllers := s.WriteControllers()
	controllers.ID = ControllersInNewClusterID
	write := controllers.Apply
	controllers.Apply = func(ctx context.Context) error {
		super, err := p.superClient()
		if err != nil {
			return err
		}
		err = step.Until(ctx, func(ctx context.Context) error {
			_, err := super.RbacV1().ClusterRoles().Get(ctx, "system:kube-scheduler", metav1.GetOptions{})
			return kube.NoAnswer(err)
		}, nil)
		if err != nil {
			return err
		}
		return write(ctx)
	}
	return controllers
}

// podStep is Files.Step for static pods, which exchange writes.
func (s StaticPods) podStep(id step.ID, name string, pods func() ([]host.File, error)) step.Step {
	return s.Files.StepWith(id, name, pods, func(ctx context.Context, files []host.File) error {
		return exchange(ctx, s.Files, files)
	})
}

// exchange writes static pods. It first removes the manifests that change and waits
// until the kubelet has ended their pods. If the kubelet sees the new manifest while
// the old pod ends, it starts the new pod ten to fifteen seconds later, and no API
// server answers meanwhile. exchange writes the manifests even after an error.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/pod_workers.go#L1060-L1063
func exchange(ctx context.Context, files host.Files, pods []host.File) error {
	replaced, err := takeAway(files, pods)
	awaitEnd(ctx, files, replaced)
	return errors.Join(err, files.Put(pods))
}

// endPause is longer than the time for which the kubelet counts a pod as running after its control group is gone: the
// housekeeping of the kubelet may remove the group before the worker of the pod ends. A new pod of the same name that
// comes earlier starts ten to fifteen seconds later.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/kubelet_pods.go#L1481
const endPause = 500 * time.Millisecond

// awaitEnd waits until the kubelet has ended the static pods. An interrupt does not shorten the
// wait: a command that needs the lock of the agent interrupts the agent. The wait is shorter
// than the limit, because the kubelet may not run. After a timeout, the new pods start later.
func awaitEnd(ctx context.Context, files host.Files, names []string) {
	if len(names) == 0 {
		return
	}
	limited := step.WithLimit(context.WithoutCancel(ctx), 3*step.CheckLimit(ctx))
	_ = step.Until(limited, func(context.Context) error {
		if at := slices.IndexFunc(names, func(name string) bool { return lives(files, name) }); at >= 0 {
			return fmt.Errorf("the kubelet has not ended %s yet", names[at])
		}
		return nil
	}, nil)
	_ = step.Pause(limited, endPause)
}

// takeAway removes the manifests whose content changes, and returns the names of their pods.
func takeAway(files host.Files, pods []host.File) (names []string, err error) {
	for _, file := range pods {
		old, err := files.Read(file.Path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(old, file.Data) {
			continue
		}
		if err := errors.Join(err, files.Remove(file.Path)); err != nil {
			return names, err
		}
		names = append(names, strings.TrimSuffix(filepath.Base(file.Path), ".yaml"))
	}
	return names, nil
}

// lives reports whether the kubelet still has a static pod of that name. The
// kubelet removes the control group of a pod last. Its name, as that of the log
// directory, contains an identity that only the kubelet knows.
func lives(files host.Files, name string) bool {
	logs := files.Match(podLogDir + "/kube-system_" + name + "-*")
	return slices.ContainsFunc(logs, func(dir string) bool {
		uid := dir[strings.LastIndex(dir, "_")+1:]
		return files.ExistsMatch("/sys/fs/cgroup/kubepods*/*burstable*/*pod"+uid+"*") ||
			files.ExistsMatch("/sys/fs/cgroup/*/kubepods*/*burstable*/*pod"+uid+"*")
	})
}
