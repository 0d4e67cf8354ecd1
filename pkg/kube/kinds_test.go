package kube

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

const kindsOfAddons = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}
---
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}
---
{apiVersion: metallb.io/v1beta1, kind: IPAddressPool, metadata: {name: a, namespace: b}}
`

// A server that does not answer has neither these kinds nor lacks them.
func TestKindsOfAServerThatDoesNotAnswer(t *testing.T) {
	k := kinds{client: http.DefaultClient, config: &rest.Config{Host: "http://127.0.0.1:1"}, found: map[schema.GroupVersionKind]metav1.APIResource{}}
	objects, err := Objects([]byte(kindsOfAddons))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		resource   string
		namespaced bool
	}{{"deployments", true}, {"clusterroles", false}, {"apiservices", false}, {"customresourcedefinitions", false}} {
		resource, namespaced, err := k.resource(objects[i])
		if err != nil || resource.Resource != want.resource || namespaced != want.namespaced {
			t.Errorf("%s: got %s, %t, %v", title(objects[i]), resource.Resource, namespaced, err)
		}
	}
	if _, _, err := k.resource(objects[4]); err == nil || meta.IsNoMatchError(err) {
		t.Errorf("a kind to ask for: got %v", err)
	}
}
