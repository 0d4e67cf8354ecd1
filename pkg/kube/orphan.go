package kube

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var ipAddresses = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ipaddresses"}

// addressTaken reports whether the API server refused a Service because its
// ClusterIP is allocated. The allocation may be an orphan. Since Kubernetes 1.33
// an allocation is an IPAddress object, which remains if the API server is
// killed while it creates the Service. Its repair loop deletes the object only
// minutes later.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/registry/core/service/ipallocator/controller/repairip.go
func addressTaken(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "is already allocated")
}

// freeAddress deletes the IPAddress object of a Service that does not exist.
// It leaves an address that belongs to another Service.
func (s *server) freeAddress(ctx context.Context, o *Object) error {
	ip, _, _ := unstructured.NestedString(o.Object, "spec", "clusterIP")
	address, err := s.Resource(ipAddresses).Get(ctx, ip, metav1.GetOptions{})
	if err != nil {
		return err
	}
	parent, _, _ := unstructured.NestedStringMap(address.Object, "spec", "parentRef")
	if parent["resource"] != "services" || parent["name"] != o.GetName() || parent["namespace"] != o.GetNamespace() {
		return nil
	}
	services, err := s.at(o)
	if err != nil {
		return err
	}
	if _, err := services.Get(ctx, o.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	return s.Resource(ipAddresses).Delete(ctx, ip, *metav1.NewPreconditionDeleteOptions(string(address.GetUID())))
}
