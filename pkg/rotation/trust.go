package rotation

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// TrustName is the ConfigMap in kube-system from which workers learn the phase of
// a rotation of the authorities. It contains no key, unlike the state.
const TrustName = "kube-bootstrap-trust"

const (
	clusterCAKey = "ca.crt"
	etcdCAKey    = "etcd-ca.crt"
)

// Trust is what a worker does in a phase: it trusts these authorities, and has
// certificates of the first ones.
type Trust struct {
	Rotation  Rotation // without the new keys
	ClusterCA []byte   // PEM
	EtcdCA    []byte   // PEM
}

func (s Store) configMaps() (typedv1.ConfigMapInterface, error) {
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceSystem), nil
}

// ReadTrust returns what workers have to do; nil if nothing.
func (s Store) ReadTrust(ctx context.Context) (*Trust, error) {
	maps, err := s.configMaps()
	if err != nil {
		return nil, err
	}
	found, err := maps.Get(ctx, TrustName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	t := Trust{ClusterCA: []byte(found.Data[clusterCAKey]), EtcdCA: []byte(found.Data[etcdCAKey])}
	if err := json.Unmarshal([]byte(found.Data[stateKey]), &t.Rotation); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	return &t, nil
}

// WriteTrust tells the workers.
func (s Store) WriteTrust(ctx context.Context, t Trust) error {
	maps, err := s.configMaps()
	if err != nil {
		return err
	}
	t.Rotation.New = nil
	state, err := json.Marshal(t.Rotation)
	if err != nil {
		return err
	}
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: TrustName},
		Data:       map[string]string{stateKey: string(state), clusterCAKey: string(t.ClusterCA), etcdCAKey: string(t.EtcdCA)},
	}
	_, err = maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: kube.FieldManager})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{FieldManager: kube.FieldManager})
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	return nil
}

// RemoveTrust removes it.
func (s Store) RemoveTrust(ctx context.Context) error {
	maps, err := s.configMaps()
	if err != nil {
		return err
	}
	if err := maps.Delete(ctx, TrustName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	return nil
}

// WatchTrust opens a watch of it.
func (s Store) WatchTrust(ctx context.Context) (watch.Interface, error) {
	maps, err := s.configMaps()
	if err != nil {
		return nil, err
	}
	return maps.Watch(ctx, named(TrustName))
}
