package join

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	bootstrap "k8s.io/cluster-bootstrap/token/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// ShareTTL is how long control planes can join by one certificate key.
const ShareTTL = 2 * time.Hour

const (
	shareName = "kube-bootstrap-control-plane"
	shareKey  = "sealed"
)

// Share uploads the files that a further control plane needs, encrypted with a new key, which it returns. The
// cluster deletes them after ShareTTL. A later Share replaces an earlier one.
func Share(ctx context.Context, client kubernetes.Interface, files []host.File) (certkey.Key, error) {
	key := certkey.New()
	contents := map[string][]byte{}
	for _, file := range files {
		contents[file.Path] = file.Data
	}
	plain, err := json.Marshal(contents)
	if err != nil {
		return key, err
	}
	sealed, err := key.Seal(plain)
	if err != nil {
		return key, err
	}
	owner, err := expiringOwner(ctx, client)
	if err != nil {
		return key, err
	}
	secret := v1.Secret(shareName, system).WithOwnerReferences(owner).WithData(map[string][]byte{shareKey: sealed})
	_, err = client.CoreV1().Secrets(system).Apply(ctx, secret,
		metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true})
	if err != nil {
		return key, fmt.Errorf("share what control planes need: %w", err)
	}
	return key, nil
}

// Shared reports whether control planes can join by a certificate key.
func Shared(ctx context.Context, client kubernetes.Interface) (bool, error) {
	_, err := client.CoreV1().Secrets(system).Get(ctx, shareName, metav1.GetOptions{})
	return err == nil, kube.IgnoreNotFound(err)
}

// Unshare ends what Share began.
func Unshare(ctx context.Context, client kubernetes.Interface) error {
	return kube.IgnoreNotFound(client.CoreV1().Secrets(system).Delete(ctx, shareName, metav1.DeleteOptions{}))
}

// expiringOwner creates a bootstrap token without rights. The controller manager deletes it on expiry, and with
// it the Secret that it owns. Other objects do not expire.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/controller/bootstrap/tokencleaner.go#L197-L207
func expiringOwner(
	ctx context.Context, client kubernetes.Interface,
) (*metav1ac.OwnerReferenceApplyConfiguration, error) {
	made, err := createSecret(ctx, client, func() *corev1.Secret {
		secret := secretOf(NewToken(ShareTTL, Scope{}, "ends the sharing of certificates among control planes"))
		for _, use := range []string{
			bootstrap.BootstrapTokenUsageAuthentication, bootstrap.BootstrapTokenUsageSigningKey,
			bootstrap.BootstrapTokenExtraGroupsKey,
		} {
			delete(secret.StringData, use)
		}
		return secret
	})
	if err != nil {
		return nil, err
	}
	return metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("Secret").WithName(made.Name).WithUID(made.UID), nil
}

// shared fetches and decrypts the files that Share published.
func (d *discovery) shared(ctx context.Context) (map[string][]byte, error) {
	var secret corev1.Secret
	path := "/api/v1/namespaces/" + system + "/secrets/" + shareName
	err := d.ask(ctx, &question{method: http.MethodGet, path: path, what: "what control planes share", into: &secret})
	if isProblem(err, notJoinable) {
		return nil, problemNamed("certificate-key",
			d.Server+" no longer publishes the keys that control planes share: they are valid for two hours",
			"make a new key with `kube-bootstrap token create --control-plane` on a control plane")
	}
	if err != nil {
		return nil, err
	}
	plain, err := d.Key.Open(secret.Data[shareKey])
	if err != nil {
		return nil, err
	}
	var contents map[string][]byte
	err = json.Unmarshal(plain, &contents)
	return contents, err
}
