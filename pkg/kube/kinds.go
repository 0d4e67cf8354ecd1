package kube

import (
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// kinds maps a kind to its resource. It knows most kinds that kube-bootstrap
// applies, and asks the API server for the group version of others. A REST mapper
// of client-go would discover all groups, and would report a group as missing if its
// discovery failed.
type kinds struct {
	config *rest.Config
	client *http.Client

	mu    sync.Mutex
	found map[schema.GroupVersionKind]metav1.APIResource
}

// unscoped are the cluster-scoped kinds of the built-in manifests.
var unscoped = map[schema.GroupKind]bool{
	{Kind: "Namespace"}: true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:         true,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:  true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                   true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             true,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,

	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}:        true,
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"}: true,

	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:                 true,
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "PriorityLevelConfiguration"}: true,
}

// resource returns the resource of an object. For a kind that the server does not
// have, the error satisfies meta.IsNoMatchError.
func (k *kinds) resource(o *Object) (resource schema.GroupVersionResource, namespaced bool, err error) {
	kind := o.GroupVersionKind()
	clusterScoped := unscoped[kind.GroupKind()]
	if clusterScoped || o.GetNamespace() != "" && scheme.Scheme.Recognizes(kind) {
		resource, _ = meta.UnsafeGuessKindToResource(kind)
		return resource, !clusterScoped, nil
	}
	return k.discover(kind)
}

func (k *kinds) discover(
	kind schema.GroupVersionKind,
) (resource schema.GroupVersionResource, namespaced bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.found[kind]; !ok {
		if err := k.ask(kind.GroupVersion()); err != nil {
			return resource, false, err
		}
	}
	found, ok := k.found[kind]
	if !ok {
		return resource, false, &meta.NoKindMatchError{
			GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version},
		}
	}
	return kind.GroupVersion().WithResource(found.Name), found.Namespaced, nil
}

// ask adds the kinds of a group version. A server without that group version has none.
func (k *kinds) ask(version schema.GroupVersion) error {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(k.config, k.client)
	if err != nil {
		return err
	}
	list, err := client.ServerResourcesForGroupVersion(version.String())
	if err != nil {
		return IgnoreNotFound(err)
	}
	for _, one := range list.APIResources {
		if subresource := strings.Contains(one.Name, "/"); !subresource {
			k.found[version.WithKind(one.Kind)] = one
		}
	}
	return nil
}
