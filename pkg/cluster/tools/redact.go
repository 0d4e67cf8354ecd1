package tools

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// objectsFile is the file of a dump that contains objects of the API.
const objectsFile = "objects.yaml"

const removed = "(removed)"

// redacted returns a file of a dump without its secrets. Objects lose values by
// their structure, because the values of a ConfigMap and of a pod's environment
// may be anything. Other files lose what looks like a secret.
func redacted(name string, data []byte) []byte {
	if path.Base(name) == objectsFile {
		data = redactObjects(data)
	}
	return redactText(data)
}

func redactObjects(data []byte) []byte {
	var objects map[string]any
	if err := yaml.Unmarshal(data, &objects); err != nil {
		return fmt.Appendf(nil, "%s: these are no objects: %d bytes\n", removed, len(data))
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

func redactMap(object map[string]any) {
	if object["kind"] == "ConfigMap" && !ofTheSystem(object) {
		redactAll(object["data"])
		redactAll(object["binaryData"])
	}
	delete(object, "kubectl.kubernetes.io/last-applied-configuration")
	if env, ok := object["env"].([]any); ok {
		for _, variable := range env {
			if variable, ok := variable.(map[string]any); ok && variable["value"] != nil {
				variable["value"] = removed
			}
		}
	}
	for key, value := range object {
		if _, ok := value.(string); ok && namesSecret(key) {
			object[key] = removed
		}
	}
}

// ofTheSystem reports whether an object is in a namespace of the cluster's own
// components, whose settings a bug report needs.
func ofTheSystem(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata["namespace"] == "kube-system" || metadata["namespace"] == "kube-public"
}

func redactAll(values any) {
	if values, ok := values.(map[string]any); ok {
		for key := range values {
			values[key] = removed
		}
	}
}

var (
	secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)?$|[-_]pwd$|secret$|token$|credentials?$|api[-_]?key$|(private|certificate|access|account|secret|client|encryption|signing|session|shared)[-_]?key([-_]?(id|data|base))?$`)
	// Each is a name, what separates it from its value, and the value.
	assignments = []*regexp.Regexp{
		regexp.MustCompile(`(--[A-Za-z0-9-]+)(=|[ \t]+)` + anyValue),
		regexp.MustCompile(`([A-Za-z0-9_.-]+)(["']?[ \t]*[:=][ \t]*)` + anyValue),
	}
)

const anyValue = `("[^"\n]*"|'[^'\n]*'|[^\s"',}]+)`

// namesSecret reports whether a field, a variable or an option has a name like
// those of secrets.
func namesSecret(name string) bool { return secretName.MatchString(strings.TrimLeft(name, "-")) }

// secrets are values that are recognized without a name.
var secrets = []struct {
	pattern *regexp.Regexp
	becomes string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`), removed},
	{regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), removed},                                 // a bootstrap token
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), removed},     // a JSON web token
	{regexp.MustCompile(`(?i)\b(Basic|Bearer)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + removed},         // of a header
	{regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@`), "${1}" + removed + "@"},      // of a URL
	{regexp.MustCompile(`(?i)(;[ \t]*[a-z ]*(key|password|pwd)=)[^;\s"']+`), "${1}" + removed},     // of a connection string
	{regexp.MustCompile(`(^|[^:0-9a-f])([0-9a-f]{12})[0-9a-f]{52}\b`), "${1}${2}" + "(shortened)"}, // a certificate key; also the ID of a container
}

func redactText(data []byte) []byte {
	for _, s := range secrets {
		data = s.pattern.ReplaceAll(data, []byte(s.becomes))
	}
	for _, assignment := range assignments {
		data = assignment.ReplaceAllFunc(data, func(found []byte) []byte {
			parts := assignment.FindSubmatch(found)
			if !namesSecret(string(parts[1])) {
				return found
			}
			return bytes.Join([][]byte{parts[1], parts[2], []byte(removed)}, nil)
		})
	}
	return data
}
