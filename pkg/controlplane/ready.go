package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// errNoConfig says that the certificates are not there yet.
var errNoConfig = errors.New("there is no " + SuperAdminConf + " yet")

// Ready waits until the API server says that it is ready.
func (c ControlPlane) Ready() step.Step {
	return step.Wait("wait for the API server", c.serves, c.explain)
}

// serves is Answers for an API server that runs the current manifest, not for a
// server that the kubelet is about to replace.
func (c ControlPlane) serves(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	if err := c.Answers(ctx); err != nil {
		return err
	}
	is, err := serverVersion(ctx, client)
	if err == nil && is.GitVersion != c.ServerVersion {
		err = fmt.Errorf("%s is %s yet, and not %s", c.Server(), is.GitVersion, c.ServerVersion)
	}
	return err
}

func serverVersion(ctx context.Context, client *kubernetes.Clientset) (is version.Info, err error) {
	data, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	return is, kube.NoAnswer(err)
}

// Answers returns nil if the API server says that it is ready.
func (c ControlPlane) Answers(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	answer, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err), len(answer) == 0:
		return step.Serves(err)
	}
	return fmt.Errorf("%s: %s", c.Server(), lastLine(string(answer)))
}

func (c ControlPlane) client() (*kubernetes.Clientset, error) {
	data, err := c.Files.Read(SuperAdminConf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoConfig
	}
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SuperAdminConf, err)
	}
	config.QPS, config.Burst = 100, 200
	return kubernetes.NewForConfig(config)
}

// explain returns the end of what the API server logged last.
func (c ControlPlane) explain() string {
	pattern := podLogDir + "/kube-system_kube-apiserver-*/kube-apiserver/*.log"
	logs, err := filepath.Glob(c.Files.Path(pattern))
	if err != nil || len(logs) == 0 {
		return "the kubelet has started no API server: there is no " + pattern
	}
	last := logs[len(logs)-1]
	data, err := c.Files.Read(strings.TrimPrefix(last, strings.TrimSuffix(c.Files.Root, "/")))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return last + ":\n" + strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// GrantAdmin gives the group of admin.conf all rights, and the API server
// those it needs on kubelets. Before it only SuperAdminConf opens anything.
func (c ControlPlane) GrantAdmin() step.Step {
	return step.Step{
		Name: "grant the administrators their rights",
		Check: func(ctx context.Context) (step.Diff, error) {
			var diff step.Diff
			client, err := c.client()
			if err != nil && !errors.Is(err, errNoConfig) {
				return nil, err
			}
			for _, b := range bindings() {
				has, err := bound(ctx, client, b.Name)
				if err != nil {
					return nil, kube.NoAnswer(err)
				}
				if !has {
					diff = append(diff, "bind "+b.Subjects[0].Name+" to "+b.RoleRef.Name)
				}
			}
			return diff, nil
		},
		Apply: func(ctx context.Context) error {
			ctx, cancel := step.Limited(ctx)
			defer cancel()
			client, err := c.client()
			if err != nil {
				return err
			}
			for _, b := range bindings() {
				_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, &b, metav1.CreateOptions{})
				if err != nil && !apierrors.IsAlreadyExists(err) {
					return err
				}
			}
			return nil
		},
	}
}

// bound reports whether a ClusterRoleBinding exists. Without a client the
// cluster does not exist yet, and neither does the binding.
func bound(ctx context.Context, client *kubernetes.Clientset, name string) (bool, error) {
	if client == nil {
		return false, nil
	}
	_, err := client.RbacV1().ClusterRoleBindings().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

func bindings() []rbacv1.ClusterRoleBinding {
	bind := func(name, role, kind, subject string) rbacv1.ClusterRoleBinding {
		return rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: kind, Name: subject}},
		}
	}
	return []rbacv1.ClusterRoleBinding{
		bind(AdminGroup, "cluster-admin", rbacv1.GroupKind, AdminGroup),
		bind("kube-bootstrap:apiserver-kubelet-client", "system:kubelet-api-admin", rbacv1.UserKind, KubeletClientUser),
	}
}
