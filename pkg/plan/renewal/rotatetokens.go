package renewal

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// tokenLife is how long the token of a pod is valid that asks for no other
	// time. The kubelet replaces a token before, and each that is a day old.
	tokenLife    = time.Hour
	maxTokenLife = 24 * time.Hour
	// tokenSlack is how late the kubelet may be.
	tokenSlack = 5 * time.Minute
)

// signAgain has the controller manager sign the tokens again that are stored in
// Secrets. It makes a token for each of these Secrets that has none.
func (r rotating) signAgain() step.Step {
	const name = "sign the tokens in Secrets with the new key"
	return step.Step{
		Name:  name,
		Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			if err != nil || now.Phase > rotation.Use {
				return nil, err
			}
			old, err := r.oldTokens(ctx, now)
			if err != nil || len(old) == 0 {
				return nil, err
			}
			return step.Diff{fmt.Sprintf("sign %d tokens again", len(old))}, nil
		},
		Apply: func(ctx context.Context) error {
			now, err := r.current(ctx)
			if err != nil {
				return err
			}
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
		},
	}
}

// oldTokens returns the Secrets with a token that the new key has not signed.
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
	_, err = client.CoreV1().Secrets(secret.Namespace).Update(ctx, &secret, metav1.UpdateOptions{FieldManager: kube.FieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the next look finds what is left
	}
	return err
}

// noteUntil notes when the kubelets will have replaced the last token that the
// old key has signed.
func (r rotating) noteUntil() step.Step {
	const name = "find out when the last token of the old key is replaced"
	return step.Step{
		Name: name,
		Check: func(ctx context.Context) (step.Diff, error) {
			now, err := r.current(ctx)
			if err != nil || now.Phase > rotation.Use || !now.Until.IsZero() {
				return nil, err
			}
			return step.Diff{name}, nil
		},
		Apply: func(ctx context.Context) error {
			now, err := r.current(ctx)
			if err != nil {
				return err
			}
			life, err := r.longestToken(ctx)
			if err != nil {
				return err
			}
			now.Until = time.Now().Add(life + tokenSlack).UTC().Truncate(time.Second)
			return r.store.Write(ctx, now)
		},
	}
}

// longestToken returns how long the tokens of the pods in the cluster are in use.
func (r rotating) longestToken(ctx context.Context) (time.Duration, error) {
	client, err := r.store.API.Client()
	if err != nil {
		return 0, err
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the pods: %w", err)
	}
	life := tokenLife
	for _, pod := range pods.Items {
		life = max(life, tokenLifeOf(pod))
	}
	return min(life, maxTokenLife), nil
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
