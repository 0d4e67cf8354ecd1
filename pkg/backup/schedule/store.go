package schedule

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	v1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// secretName is the Secret in kube-system that contains the schedule.
	secretName  = "kube-bootstrap-backups"
	scheduleKey = "schedule.json"
)

// Store gives access to the schedule of a cluster.
type Store struct{ API kube.Connect }

// Read returns the schedule; nil if there is none.
func (s Store) Read(ctx context.Context) (*Schedule, error) {
	secret, err := kube.Ask(s.API, func(client kubernetes.Interface) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(metav1.NamespaceSystem).Get(ctx, secretName, metav1.GetOptions{})
	})
	if err != nil {
		return nil, step.Wrap(kube.IgnoreNotFound(err), "read the schedule of backups")
	}
	found := &Schedule{}
	if err := json.Unmarshal(secret.Data[scheduleKey], found); err != nil {
		return nil, fmt.Errorf("Secret %s/%s: %w", metav1.NamespaceSystem, secretName, err)
	}
	return found, nil
}

// Write replaces the schedule.
func (s Store) Write(ctx context.Context, schedule Schedule) error {
	data, err := json.Marshal(schedule)
	if err != nil {
		return err
	}
	secret := v1.Secret(secretName, metav1.NamespaceSystem).WithData(map[string][]byte{scheduleKey: data})
	options := metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true}
	err = s.API.Do(func(client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(metav1.NamespaceSystem).Apply(ctx, secret, options)
		return err
	})
	return step.Wrap(err, "write the schedule of backups")
}

// Remove removes the schedule, which may be missing. The backups stay.
func (s Store) Remove(ctx context.Context) error {
	return s.API.Do(func(client kubernetes.Interface) error {
		secrets := client.CoreV1().Secrets(metav1.NamespaceSystem)
		return kube.IgnoreNotFound(secrets.Delete(ctx, secretName, metav1.DeleteOptions{}))
	})
}

// Watch opens a watch of the schedule.
func (s Store) Watch(ctx context.Context) (watch.Interface, error) {
	return kube.Ask(s.API, func(client kubernetes.Interface) (watch.Interface, error) {
		return client.CoreV1().Secrets(metav1.NamespaceSystem).Watch(ctx,
			metav1.SingleObject(metav1.ObjectMeta{Name: secretName}))
	})
}
