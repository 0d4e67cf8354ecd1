package rotation

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	v1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// TrustName is the ConfigMap in kube-system from which workers learn the phase of
// a rotation of the authorities. It contains no key, unlike the state.
const TrustName = "kube-bootstrap-trust"

const (
	trustKey     = "trust.json"
	signatureKey = "signature"
)

// Trust states the authorities that a worker trusts in a phase. The first of each
// list signs the certificates of the worker.
type Trust struct {
	Rotation  Rotation `json:"rotation"`  // without the new keys
	ClusterCA []byte   `json:"clusterCA"` // PEM
	EtcdCA    []byte   `json:"etcdCA"`    // PEM
}

// ReadTrust returns the content of the ConfigMap, nil if there is none. genuine
// reports whether an authority that the worker trusts has signed the text. Write
// access to the ConfigMap alone therefore cannot replace the authorities of a worker.
func (s StateStore) ReadTrust(ctx context.Context, genuine func(text, signature []byte) bool) (*Trust, error) {
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, TrustName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	text := found.BinaryData[trustKey]
	if !genuine(text, found.BinaryData[signatureKey]) {
		return nil, fmt.Errorf("ConfigMap %s/%s: it is not signed by a certificate authority that this host trusts",
			metav1.NamespaceSystem, TrustName)
	}
	var t Trust
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	return &t, nil
}

// WriteTrust publishes t, signed by an authority that the workers trust.
func (s StateStore) WriteTrust(ctx context.Context, t Trust, sign func(text []byte) ([]byte, error)) error {
	client, err := s.API.Client()
	if err != nil {
		return err
	}
	t.Rotation.New = nil
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	signature, err := sign(text)
	if err != nil {
		return fmt.Errorf("sign ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	object := v1.ConfigMap(TrustName, metav1.NamespaceSystem).
		WithBinaryData(map[string][]byte{trustKey: text, signatureKey: signature})
	options := metav1.ApplyOptions{FieldManager: kube.FieldManager, Force: true}
	if _, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Apply(ctx, object, options); err != nil {
		return fmt.Errorf("write ConfigMap %s/%s: %w", metav1.NamespaceSystem, TrustName, err)
	}
	return nil
}

// WatchTrust opens a watch of the ConfigMap.
func (s StateStore) WatchTrust(ctx context.Context) (watch.Interface, error) {
	client, err := s.API.Client()
	if err != nil {
		return nil, err
	}
	return client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Watch(ctx,
		metav1.SingleObject(metav1.ObjectMeta{Name: TrustName}))
}
