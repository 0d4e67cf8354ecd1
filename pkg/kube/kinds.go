package kube

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// kinds maps a kind to its resource. It knows most kinds that kube-bootstrap
// applies, and asks the API server once for all others.
type kinds struct {
	config *rest.Config

	mu     sync.Mutex
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// unscoped are the cluster-scoped kinds of the built-in manifests.
var unscoped = map[string]bool{"Namespace": true, "ClusterRole": true, "ClusterRoleBinding": true, "StorageClass": true}

func (k *kinds) resource(o *Object) (resource schema.GroupVersionResource, namespaced bool, err error) {
	kind := o.GroupVersionKind()
	if scheme.Scheme.Recognizes(kind) && (o.GetNamespace() != "" || unscoped[kind.Kind]) {
		resource, _ = meta.UnsafeGuessKindToResource(kind)
		return resource, !unscoped[kind.Kind], nil
	}
	mapping, err := k.discover(kind)
	if err != nil {
		return resource, false, err
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (k *kinds) discover(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mapper == nil {
		client, err := discovery.NewDiscoveryClientForConfig(k.config)
		if err != nil {
			return nil, err
		}
		k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	}
	mapping, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		// The CustomResourceDefinition may be among the objects that are being
		// applied: discover again at the next attempt.
		k.mapper.Reset()
	}
	return mapping, err
}
