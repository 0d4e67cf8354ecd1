package kube

import (
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// applied reports whether the live object shows that an Apply of o would change
// nothing: FieldManager owns exactly the fields of o, with the values of o. False
// means unknown, because the server may write a value in another form (cpu "0.1" as "100m").
func applied(live, o *Object) bool {
	fields := map[string]any{}
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if entry.APIVersion != o.GetAPIVersion() || entry.FieldsV1 == nil ||
			json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			return false
		}
	}
	return reflect.DeepEqual(ownedFields(live.Object, fields), unnamed(o))
}

// unnamed returns the content of o without what identifies it, which no manager owns.
func unnamed(o *Object) map[string]any {
	content := o.DeepCopy().Object
	delete(content, "apiVersion")
	delete(content, "kind")
	metadata := content["metadata"].(map[string]any)
	delete(metadata, "name")
	delete(metadata, "namespace")
	if len(metadata) == 0 {
		delete(content, "metadata")
	}
	return content
}

// owned returns the part of a live value that the keys of fields name. They have the
// format of FieldsV1 (k8s.io/apimachinery/pkg/apis/meta/v1): "f:" and the name of a
// field, "k:" and the keys of a list item, "v:" and an item of a set, or "." for the value itself.
func owned(live any, fields map[string]any) any {
	if len(fields) == 0 {
		return live
	}
	switch live := live.(type) {
	case map[string]any:
		return ownedFields(live, fields)
	case []any:
		return ownedItems(live, fields)
	}
	return nil
}

func ownedFields(live, fields map[string]any) map[string]any {
	part := map[string]any{}
	for key, below := range fields {
		if name, ok := strings.CutPrefix(key, "f:"); ok {
			part[name] = owned(live[name], content(below))
		}
	}
	return part
}

func ownedItems(live []any, fields map[string]any) (part []any) {
	for _, item := range live {
		for key, below := range fields {
			if identifies(key, item) {
				part = append(part, owned(item, content(below)))
			}
		}
	}
	return part
}

// identifies reports whether a key of FieldsV1 names an item of a list.
func identifies(key string, item any) bool {
	kind, identity, _ := strings.Cut(key, ":")
	var want any
	if kind != "k" && kind != "v" || json.Unmarshal([]byte(identity), &want) != nil {
		return false
	}
	if kind == "k" {
		all := content(item)
		for name, value := range content(want) {
			if !reflect.DeepEqual(all[name], value) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(item, want)
}

// content returns a JSON object, or nil for any other value.
func content(value any) map[string]any {
	fields, _ := value.(map[string]any)
	return fields
}
