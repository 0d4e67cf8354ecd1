package addon

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

// mirrorPod is the mirror pod of a component of the control plane.
const mirrorPod = `
apiVersion: v1
kind: Pod
metadata:
  name: kube-apiserver-one
  namespace: kube-system
  labels: {tier: control-plane, component: kube-apiserver, app.kubernetes.io/version: v1.36.3}
  annotations: {kubernetes.io/config.mirror: x}
spec: {nodeName: one, containers: [{name: c, image: c:v1}]}
`

// event is an event of a kubelet.
const event = `
apiVersion: v1
kind: Event
metadata:
  name: probe.18a2b3c4d5e6f708
  namespace: default
  managedFields:
  - {manager: kubelet, operation: Update, apiVersion: v1, time: "2026-01-01T00:00:00Z", fieldsType: FieldsV1, fieldsV1: {"f:count": {}, "f:source": {"f:component": {}, "f:host": {}}}}
involvedObject: {kind: Pod, namespace: default, name: probe, uid: x, apiVersion: v1, fieldPath: "spec.containers{c}"}
reason: Pulled
message: the image is present
source: {component: kubelet, host: one}
type: Normal
count: 1
`

// certificateRequest is a request of a kubelet for a certificate.
const certificateRequest = `
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata: {name: csr-x}
spec: {request: eHh4, signerName: kubernetes.io/kubelet-serving, usages: [digital signature, server auth], username: "system:node:one", groups: ["system:nodes"]}
`

// nodeDenies returns the function that says why the policies deny an object of the node one.
func nodeDenies(t *testing.T) func(object string) string {
	t.Helper()
	policies := policiesOf(t, objects(t, variants()["full"]))
	node := &user.DefaultInfo{Name: "system:node:one", Groups: []string{"system:nodes", "system:authenticated"}}
	return func(object string) string { return denied(t, policies, object, node) }
}

func TestWhatANodeCreates(t *testing.T) {
	deny := nodeDenies(t)
	for _, object := range []string{
		mirrorPod, strings.ReplaceAll(mirrorPod, "kube-apiserver", "kube-scheduler"), event, certificateRequest,
		strings.Replace(event, "the image is present", strings.Repeat("x", 8000), 1),
		strings.Replace(event, "managedFields:", "annotations: {a: b}\n  labels: {a: b}\n  managedFields:", 1),
		strings.Replace(certificateRequest, "eHh4", strings.Repeat("eHh4", 1000), 1),
	} {
		if why := deny(object); why != "" {
			t.Errorf("denied: %s\n%.300s", why, object)
		}
	}
}
