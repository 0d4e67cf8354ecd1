package dump

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// systemNamespaces contain the components of the cluster, whose settings and logs a
// bug report needs. Those of other namespaces are the users'.
var systemNamespaces = []string{
	"kube-system", "kube-public", "kube-node-lease", "local-path-storage", "metallb-system", "kube-flannel",
	"calico-system", "calico-apiserver", "tigera-operator",
}

// redactObjects reduces the objects of users to fields that contain no secret, and removes what
// is named like a secret from the objects of the system and of Docker.
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

// redactValue redacts an object, and all objects in it.
func redactValue(value any) {
	switch value := value.(type) {
	case []any:
		redactArguments(value)
		for _, item := range value {
			redactValue(item)
		}
	case map[string]any:
		if isObject(value) && !ofTheSystem(value) {
			reduce(value)
			return
		}
		redactMap(value)
		for _, item := range value {
			redactValue(item)
		}
	}
}

func redactMap(object map[string]any) {
	if annotations, ok := object["annotations"].(map[string]any); ok {
		maps.DeleteFunc(annotations, func(key string, _ any) bool { return !keptAnnotation(key) })
	}
	redactEnv(object)
	for key, value := range object {
		if _, ok := value.(string); ok && namesSecret(key) {
			object[key] = removed
		}
	}
}

// keptAnnotation reports whether Kubernetes or kube-bootstrap writes an annotation. kubectl keeps
// whole objects in its own.
func keptAnnotation(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	ours := strings.HasSuffix(domain, "kubernetes.io") || strings.HasSuffix(domain, "k8s.io") ||
		domain == "kube-bootstrap.dev"
	return ours && domain != "kubectl.kubernetes.io"
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

// redactEnv removes the values of the environment of a pod, or of Docker's container.
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

// isObject reports whether a value is an object of the API, and no list of them.
func isObject(value map[string]any) bool {
	_, kind := value["kind"].(string)
	_, version := value["apiVersion"].(string)
	_, list := value["items"]
	return kind && version && !list
}

// clusterKinds are the kinds without a namespace whose fields describe the cluster.
var clusterKinds = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "CSIDriver", "CSINode",
	"CustomResourceDefinition",
	"FlowSchema", "IngressClass", "Namespace", "Node", "PriorityClass", "PriorityLevelConfiguration", "RuntimeClass",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// ofTheSystem reports whether an object belongs to the cluster and not to its users.
func ofTheSystem(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		return slices.Contains(systemNamespaces, namespace)
	}
	kind, _ := object["kind"].(string)
	return slices.Contains(clusterKinds, kind) && !isCustom(object)
}

// keptFields are the fields of users' objects that stay, wherever they are. All other fields,
// such as commands, variables, headers, annotations and messages, may contain a secret.
var keptFields = set(`apiVersion kind metadata name namespace uid creationTimestamp deletionTimestamp generation ownerReferences controller finalizers
	spec status conditions type reason lastTransitionTime observedGeneration phase template
	nodeName podIP podIPs ip hostIP hostIPs hostNetwork clusterIP clusterIPs ipFamilies addresses endpoints serving terminating loadBalancer ingress
	ports port targetPort nodePort protocol containerPort hostPort externalTrafficPolicy internalTrafficPolicy sessionAffinity policyTypes
	containers initContainers ephemeralContainers containerStatuses initContainerStatuses image imageID imagePullPolicy
	ready started restartCount state lastState waiting running terminated exitCode signal startedAt finishedAt startTime completionTime
	resources cpu memory replicas readyReplicas availableReplicas updatedReplicas unavailableReplicas currentReplicas
	currentNumberScheduled desiredNumberScheduled numberReady numberAvailable numberUnavailable numberMisscheduled
	restartPolicy priorityClassName runtimeClassName schedulerName serviceAccountName tolerations key operator effect
	volumeName storageClassName accessModes volumeMode persistentVolumeReclaimPolicy claimRef provisioner volumeBindingMode
	parallelism completions succeeded failed active schedule suspend roleRef subjects apiGroup`)

// keptMaps are fields of the same kind whose keys are free: labels, and quantities.
var keptMaps = set("labels matchLabels selector nodeSelector requests limits capacity allocatedResources")

func set(names string) map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(names) {
		all[name] = true
	}
	return all
}

// reduce keeps the fields of keptFields, and of a custom resource only the conditions and what
// identifies it.
func reduce(object map[string]any) {
	if isCustom(object) {
		status, _ := object["status"].(map[string]any)
		maps.DeleteFunc(object,
			func(key string, _ any) bool { return key != "apiVersion" && key != "kind" && key != "metadata" })
		object["status"] = map[string]any{"conditions": status["conditions"]}
	}
	keep(object)
}

// keep removes the other fields of a value, and what is empty then.
func keep(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			keep(item)
		}
	case map[string]any:
		maps.DeleteFunc(value, func(key string, field any) bool {
			if keptMaps[key] {
				return false
			}
			keep(field)
			inner, isMap := field.(map[string]any)
			return !keptFields[key] || field == nil || isMap && len(inner) == 0
		})
	}
}

// isCustom reports whether the group of an object is not one of Kubernetes.
func isCustom(object map[string]any) bool {
	version, _ := object["apiVersion"].(string)
	group, _, _ := strings.Cut(version, "/")
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io")
}
