package renewal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// tokenLife is the lifetime of a pod's token unless the pod requests another
	// one. The kubelet replaces a token before it expires, and after 24 hours at
	// the latest.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/token/token_manager.go#L172-L195
	tokenLife    = time.Hour
	maxTokenLife = 24 * time.Hour
	// tokenSlack is how late the kubelet may be.
	tokenSlack = 5 * time.Minute
)

const secretsPrefix = "/registry/secrets/"

func (r rotating) encryptAgain() step.Step {
	return r.step("encrypt-again", "encrypt all Secrets with the new key", rotation.Use,
		func(ctx context.Context, now rotation.Rotation) (step.Diff, error) {
			old, err := r.oldSecrets(ctx, now)
			if err != nil || len(old) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("write %d Secrets again", len(old))}, nil
		}, func(ctx context.Context, now rotation.Rotation) error {
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
		})
}

// oldSecrets returns the Secrets, as namespace/name, that are not encrypted with
// the new key. Only etcd knows that.
func (r rotating) oldSecrets(ctx context.Context, now rotation.Rotation) (keys []string, err error) {
	begins, err := controlplane.EncryptedBy(now)
	if err != nil {
		return nil, err
	}
	err = r.etcd.Client.Do(ctx, func(client *clientv3.Client) error {
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
		return r.store.API.Do(func(client kubernetes.Interface) error {
			secrets := client.CoreV1().Secrets(namespace)
			secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: kube.FieldManager})
			}
			return kube.IgnoreNotFound(err)
		})
	}, nil)
}

// signAgain has the controller manager sign the tokens again that are stored in
// Secrets. It makes a token for each of these Secrets that has none.
func (r rotating) signAgain() step.Step {
	return r.step("sign-again", "sign the tokens in Secrets with the new key", rotation.Use,
		func(ctx context.Context, now rotation.Rotation) (step.Diff, error) {
			old, err := r.oldTokens(ctx, now)
			if err != nil || len(old) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("sign %d tokens again", len(old))}, nil
		}, func(ctx context.Context, now rotation.Rotation) error {
			return step.Until(ctx, func(ctx context.Context) error {
				old, err := r.oldTokens(ctx, now)
				if err != nil || len(old) == 0 {
					return err
				}
				for _, secret := range old {
					if err := r.dropToken(ctx, secret); err != nil {
						return err
					}
				}
				return errors.New("wait for the controller manager to sign the tokens")
			}, nil)
		}).Waiting()
}

func (r rotating) oldTokens(ctx context.Context, now rotation.Rotation) (old []corev1.Secret, err error) {
	client, err := r.store.API.Client()
	if err != nil {
		return nil, err
	}
	only := fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()
	all, err := client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: only})
	if err != nil {
		return nil, fmt.Errorf("list the Secrets with tokens: %w", err)
	}
	for _, secret := range all.Items {
		signed, err := controlplane.SignedBy(now, secret.Data[corev1.ServiceAccountTokenKey])
		if err != nil {
			return nil, err
		}
		if !signed {
			old = append(old, secret)
		}
	}
	return old, nil
}

func (r rotating) dropToken(ctx context.Context, secret corev1.Secret) error {
	if len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
		return nil
	}
	client, err := r.store.API.Client()
	if err != nil {
		return err
	}
	delete(secret.Data, corev1.ServiceAccountTokenKey)
	options := metav1.UpdateOptions{FieldManager: kube.FieldManager}
	_, err = client.CoreV1().Secrets(secret.Namespace).Update(ctx, &secret, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next look finds what is left
	}
	return err
}

// noteUntil notes when the kubelets will have replaced the last token that the
// old key has signed.
func (r rotating) noteUntil() step.Step {
	const name = "find out when the last token of the old key is replaced"
	todo := func(_ context.Context, now rotation.Rotation) (step.Diff, error) {
		if !now.Until.IsZero() {
			return nil, nil
		}
		return step.Diff{name}, nil
	}
	return r.step("find-out-end", name, rotation.Use, todo, func(ctx context.Context, now rotation.Rotation) error {
		life, err := r.longestToken(ctx)
		if err != nil {
			return err
		}
		now.Until = time.Now().Add(life + tokenSlack).UTC().Truncate(time.Second)
		return r.store.Write(ctx, now)
	})
}

func (r rotating) longestToken(ctx context.Context) (time.Duration, error) {
	return kube.Ask(r.store.API, func(client kubernetes.Interface) (time.Duration, error) {
		pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, fmt.Errorf("list the pods: %w", err)
		}
		life := tokenLife
		for _, pod := range pods.Items {
			life = max(life, tokenLifeOf(pod))
		}
		return min(life, maxTokenLife), nil
	})
}

func tokenLifeOf(pod corev1.Pod) (life time.Duration) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if token := source.ServiceAccountToken; token != nil && token.ExpirationSeconds != nil {
				life = max(life, time.Duration(*token.ExpirationSeconds)*time.Second)
			}
		}
	}
	return life
}

func (r rotating) publishTrust(ctx context.Context, now rotation.Rotation) error {
	clusterCA, clusterErr := r.pki.Files.Read(join.ClusterCAFile)
	etcdCA, etcdErr := r.pki.Files.Read(join.EtcdCAFile)
	signer, err := controlplane.Signer(r.pki.Files, controlplane.ClusterCA)
	if err := cmp.Or(clusterErr, etcdErr, err); err != nil {
		return err
	}
	return r.store.WriteTrust(ctx, rotation.Trust{Rotation: now, ClusterCA: clusterCA, EtcdCA: etcdCA}, signer.SignText)
}

// dropTokens deletes the bootstrap tokens: the commands that were printed with
// them contain the hash of the old authority. Until the end of the rotation, no
// others are created.
func (r rotating) dropTokens() step.Step {
	return r.step("drop-tokens", "delete the bootstrap tokens of the old authority", rotation.Accept,
		func(ctx context.Context, _ rotation.Rotation) (diff step.Diff, err error) {
			tokens, err := kube.Ask(r.store.API, func(client kubernetes.Interface) ([]join.Token, error) {
				return join.ListTokens(ctx, client)
			})
			for _, token := range tokens {
				diff = append(diff, "delete token "+token.ID)
			}
			return diff, err
		}, func(ctx context.Context, _ rotation.Rotation) error {
			return r.store.API.Do(func(client kubernetes.Interface) error {
				tokens, err := join.ListTokens(ctx, client)
				return cmp.Or(err, host.Each(tokens, func(token join.Token) error {
					return join.DeleteToken(ctx, client, token.ID)
				}))
			})
		})
}
