package rotation

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rollout"
)

// SecretName is the Secret in kube-system that contains the state. The API
// server encrypts it in etcd as every Secret.
const SecretName = "kube-bootstrap-rotation"

const (
	stateKey = "rotation.json"
	// followed annotates a node with the phase that its host has reached.
	followed = "kube-bootstrap.dev/rotation"
)

// StateStore gives access to the state.
type StateStore struct{ API kube.Connect }

// Read returns the rotation that is under way; nil if none is.
func (s StateStore) Read(ctx context.Context) (*Rotation, error) {
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	secret, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the state of the rotation: %w", err)
	}
	r := Rotation{version: secret.ResourceVersion}
	if err := json.Unmarshal(secret.Data[stateKey], &r); err != nil {
		return nil, fmt.Errorf("Secret %s/%s: %w", metav1.NamespaceSystem, SecretName, err)
	}
	return &r, nil
}

// Write creates the state, or replaces the state that r was read from. It fails if
// another command has changed the state since.
func (s StateStore) Write(ctx context.Context, r Rotation) error {
	client, err := s.API.Client()
	if err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: SecretName, ResourceVersion: r.version},
		Data:       map[string][]byte{stateKey: data},
	}
	secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
	if r.version == "" {
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: kube.FieldManager})
	} else {
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: kube.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write the state of the rotation: %w", err)
	}
	return nil
}

// Remove removes the state, and what workers know of it. Either may be missing.
func (s StateStore) Remove(ctx context.Context) error {
	client, err := s.API.Client()
	if err != nil {
		return err
	}
	core, options := client.CoreV1(), metav1.DeleteOptions{}
	if err := kube.IgnoreNotFound(core.ConfigMaps(metav1.NamespaceSystem).Delete(ctx, TrustName, options)); err != nil {
		return fmt.Errorf("remove %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	if err := kube.IgnoreNotFound(core.Secrets(metav1.NamespaceSystem).Delete(ctx, SecretName, options)); err != nil {
		return fmt.Errorf("remove %s/%s: %w", metav1.NamespaceSystem, SecretName, err)
	}
	return nil
}

// Watch opens a watch of the state.
func (s StateStore) Watch(ctx context.Context) (watch.Interface, error) {
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	return client.CoreV1().Secrets(metav1.NamespaceSystem).Watch(ctx,
		metav1.SingleObject(metav1.ObjectMeta{Name: SecretName}))
}

// Notes returns the phases that hosts have noted.
func (s StateStore) Notes() rollout.Annotations {
	return rollout.Annotations{API: s.API, Annotation: followed, Operation: "the rotation"}
}
