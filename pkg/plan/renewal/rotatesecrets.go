package renewal

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// secretsPrefix is where the API server stores Secrets in etcd.
const secretsPrefix = "/registry/secrets/"

// encryptAgain has the API server encrypt all Secrets with the new key.
func (r rotating) encryptAgain() step.Step {
	const name = "encrypt all Secrets with the new key"
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			if err != nil || now.Phase > rotation.Use {
				return nil, err
			}
			old, err := r.oldSecrets(ctx, now)
			if err != nil || len(old) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("write %d Secrets again", len(old))}, nil
		},
		Apply: func(ctx context.Context) error {
			now, err := r.current(ctx)
			if err != nil {
				return err
			}
			old, err := r.oldSecrets(ctx, now)
			if err != nil {
				return err
			}
			for i, key := range old {
				step.Report(ctx, key, int64(i), int64(len(old)))
				if err := r.writeAgain(ctx, key); err != nil {
					return fmt.Errorf("write Secret %s again: %w", key, err)
				}
			}
			return nil
		},
	}
}

// oldSecrets returns the Secrets, as namespace/name, that are not encrypted with
// the new key. Only etcd knows that.
func (r rotating) oldSecrets(ctx context.Context, now rotation.Rotation) (keys []string, err error) {
	begins, err := controlplane.EncryptedBy(now)
	if err != nil {
		return nil, err
	}
	err = parts.Etcd(r.Host).Do(ctx, func(client *clientv3.Client) error {
		keys, err = etcd.KeysWithout(ctx, client, secretsPrefix, begins)
		return err
	})
	return keys, err
}

// writeAgain writes a Secret unchanged, which the API server then encrypts with
// its first key.
func (r rotating) writeAgain(ctx context.Context, key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	return step.Until(ctx, func(ctx context.Context) error {
		client, err := r.store.API.Client()
		if err != nil {
			return err
		}
		secrets := client.CoreV1().Secrets(namespace)
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}, nil)
}
