package join

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheKeyOfBundlesIsPublished: and nothing in its place if bundles need no signature.
func TestTheKeyOfBundlesIsPublished(t *testing.T) {
	const key = "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----\n"
	for _, want := range []string{"", key} {
		all, err := Publisher{Settings: []byte("podCIDR: 10.1.0.0/16\n"), Read: func() (Published, error) {
			return Published{ClusterCA: newAuthority(t).pem(), EtcdCA: []byte("pem\n"), VerifyKey: []byte(want)}, nil
		}}.objects()
		must.NoError(t, err)
		for _, o := range all {
			if o.GetKind() != "ConfigMap" || o.GetName() != settingsName {
				continue
			}
			got, found, err := unstructured.NestedString(o.Object, "data", verifyKey)
			if err != nil || got != want || found != (want != "") {
				t.Errorf("got %q %t %v, want %q", got, found, err, want)
			}
		}
	}
}
