package dump

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// systemNamespaces contain the components of the cluster, whose settings and logs a
// bug report needs. Those of other namespaces are the users'.
var systemNamespaces = []string{
	"kube-system", "kube-public", "kube-node-lease", "local-path-storage", "metallb-system", "kube-flannel", "calico-system", "calico-apiserver", "tigera-operator",
}

// redactObjects removes the secrets of objects of Kubernetes or of Docker by their
// structure: the values of a ConfigMap and of an environment may be anything.
func redactObjects(data []byte) []byte {
	var objects any
	exactly := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }
	if err := yaml.Unmarshal(data, &objects, exactly); err != nil {
		return fmt.Appendf(nil, "%s: these are no objects: %d bytes\n", removed, len(data))
	}
	if _, ok := objects.(string); ok {
		return fmt.Appendf(nil, "%s: this is no object: %d bytes\n", removed, len(data))
	}
	redactValue(objects)
	out, err := yaml.Marshal(objects)
	if err != nil {
		return fmt.Appendf(nil, "%s: %v\n", removed, err)
	}
	return out
}

// redactValue removes the secrets of an object, and of all objects in it.
func redactValue(value any) {
	switch value := value.(type) {
	case []any:
		redactArguments(value)
		for _, item := range value {
			redactValue(item)
		}
	case map[string]any:
		redactMap(value)
		for _, item := range value {
			redactValue(item)
		}
	}
}

var option = regexp.MustCompile(`^--?[A-Za-z0-9-]+$`)

// redactArguments removes the values of options that are arguments of their own.
func redactArguments(list []any) {
	for i := range len(list) - 1 {
		name, _ := list[i].(string)
		if _, ok := list[i+1].(string); ok && option.MatchString(name) && namesSecret(name) {
			list[i+1] = removed
		}
	}
}

func redactMap(object map[string]any) {
	if object["kind"] != nil && ofAUser(object) {
		redactUsers(object)
	}
	delete(object, "kubectl.kubernetes.io/last-applied-configuration")
	redactEnv(object)
	for key, value := range object {
		if _, ok := value.(string); ok && namesSecret(key) {
			object[key] = removed
		}
	}
}

// redactEnv removes the values of the environment of a pod and of a container of
// Docker.
func redactEnv(object map[string]any) {
	env, _ := object["env"].([]any)
	for _, variable := range env {
		if variable, ok := variable.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = removed
		}
	}
	env, _ = object["Env"].([]any)
	for i, variable := range env {
		if variable, ok := variable.(string); ok {
			name, _, _ := strings.Cut(variable, "=")
			env[i] = name + "=" + removed
		}
	}
}

// ofAUser reports whether an object is in a namespace that is not the system's. An
// object of the whole cluster is not.
func ofAUser(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	if namespace == "" {
		return object["kind"] == "ConfigMap" // which has a namespace, unless it is no object of the API
	}
	return !slices.Contains(systemNamespaces, namespace)
}

// redactUsers removes what users write freely: the content of a ConfigMap, the
// specification of a custom resource, and the commands of containers.
func redactUsers(object map[string]any) {
	if object["kind"] == "ConfigMap" {
		redactAll(object["data"])
		redactAll(object["binaryData"])
	}
	if version, _ := object["apiVersion"].(string); isCustom(version) && object["spec"] != nil {
		object["spec"] = removed
	}
	redactCommands(object["spec"])
}

// isCustom reports whether the group of an API version is not one of Kubernetes.
func isCustom(version string) bool {
	group, _, _ := strings.Cut(version, "/")
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}

func redactCommands(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			redactCommands(item)
		}
	case map[string]any:
		for key, item := range value {
			if _, list := item.([]any); list && (key == "command" || key == "args") {
				value[key] = []any{removed}
				continue
			}
			redactCommands(item)
		}
	}
}

func redactAll(values any) {
	if values, ok := values.(map[string]any); ok {
		for key := range values {
			values[key] = removed
		}
	}
}
