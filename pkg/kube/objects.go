package kube

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Object is an API object of any kind.
type Object = unstructured.Unstructured

// Objects reads a YAML or JSON stream, with the items of each List.
func Objects(manifests []byte) ([]*Object, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	var all []*Object
	for n := 1; ; n++ {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			all, err = appendObjects(all, doc)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
	}
}

func appendObjects(all []*Object, doc []byte) ([]*Object, error) {
	content := map[string]any{}
	if err := utilyaml.Unmarshal(doc, &content); err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return all, nil
	}
	object := &Object{Object: content}
	if !object.IsList() {
		return appendObject(all, object)
	}
	err := object.EachListItem(func(item runtime.Object) (err error) {
		all, err = appendObject(all, item.(*Object))
		return err
	})
	return all, err
}

func appendObject(all []*Object, object *Object) ([]*Object, error) {
	if object.GetKind() == "" || object.GetAPIVersion() == "" || object.GetName() == "" {
		return nil, errors.New("an object needs apiVersion, kind and metadata.name")
	}
	return append(all, object), nil
}

// title names an object as a user would: "ConfigMap kube-system/coredns".
func title(o *Object) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// rank returns the order of apply: 0 for namespaces,
// CustomResourceDefinitions and priority classes, 2 for workloads, whose pods
// may need all other objects, and 1 for the rest.
func rank(o *Object) int {
	switch o.GetKind() {
	case "Namespace", "CustomResourceDefinition", "PriorityClass":
		return 0
	case "Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob":
		return 2
	default:
		return 1
	}
}
