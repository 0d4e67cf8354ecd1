package dump

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const removed = "(removed)"

const (
	// secretWords are the ends of the names of secrets.
	secretWords = `(?:pass(?:word|wd|phrase)?|[-_]pwd|secret|token|credentials?|registry[-_]auth|api[-_]?key|` +
		`(?:private|certificate|access|account|secret|client|encryption|signing|session|shared)[-_]?key(?:[-_]?(?:id|data|base))?)`
	// anyValue matches a value: in escaped quotes, because logs quote JSON, in quotes,
	// without, or in quotes that the end of the line has cut.
	anyValue = `(\\+"[^"\\\n]*\\+"|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(?:[^\s"',}\\]|\\[^"'\s])+|["'][^"'\n]*)`
)

var (
	secretName = regexp.MustCompile(`(?i)(?:` + secretWords + `|^_?auth)$`)
	// opening is the quote with which a value begins.
	opening = regexp.MustCompile(`^\\*["']`)
	// assigned are the names of secrets, the separators and the values.
	assigned = []*regexp.Regexp{
		regexp.MustCompile(`(?i)(--[a-z0-9-]*` + secretWords + `(?:=|\\*["']?,?[ \t]+|\\*["'],))` + anyValue),
		regexp.MustCompile(`(?i)((?:` + secretWords + `|(?:^|[^a-z0-9_.-])_?auth)\\*["']?[ \t]*[:=][ \t]*)` + anyValue),
	}
	assignedHints = []string{"pass", "pwd", "secret", "token", "credential", "auth", "key"}
)

// namesSecret reports whether a field, a variable or an option is named like a secret.
func namesSecret(name string) bool { return secretName.MatchString(strings.TrimLeft(name, "-")) }

// keys match private keys, which have several lines.
var keys = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`([A-Za-z0-9+/=]{16,}\s+)*-----END [A-Z ]*PRIVATE KEY-----`), // a log begins within the key
}

// secrets are values that are recognized without a name. Only lines that contain one
// of the hints, in lower case, are searched: most lines of a log contain none.
var secrets = []struct {
	hints   []string
	pattern *regexp.Regexp
	becomes string
}{
	{[]string{"ls0tls1crudjtib"}, regexp.MustCompile(`LS0tLS1CRUdJTiB[^D][A-Za-z0-9+/=]*`), removed},                                                      // PEM in base64, except certificates
	{[]string{"."}, regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), removed},                                                                         // a bootstrap token
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), removed},                                           // a JSON web token
	{[]string{"gh", "glpat-", "dckr_", "akia", "asia"}, regexp.MustCompile(`\b(gh[pousr]_|glpat-|dckr_(pat|oat)_|AKIA|ASIA)[A-Za-z0-9_-]{16,}`), removed}, // of registries and clouds
	{[]string{"basic", "bearer"}, regexp.MustCompile(`(?i)\b(Basic|Bearer)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + removed},                                   // of a header
	{[]string{"://"}, regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@`), "${1}" + removed + "@"},                                            // of a URL
	{[]string{";"}, regexp.MustCompile(`(?i)(;[ \t]*[a-z ]*(key|password|pwd)=)[^;\s"']+`), "${1}" + removed},                                             // of a connection string
	{nil, regexp.MustCompile(`(^|[^:0-9a-f])([0-9a-f]{12})[0-9a-f]{52}\b`), "${1}${2}" + "(shortened)"},                                                   // a certificate key; also the ID of a container
}

// Redact returns a text without what looks like a secret.
func Redact(text []byte) []byte {
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		for _, key := range keys {
			text = key.ReplaceAll(text, []byte(removed))
		}
	}
	clean := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		clean = append(clean, redactLine(line)...)
	}
	return clean
}

func redactLine(line []byte) []byte {
	lower := bytes.ToLower(line)
	contains := func(hint string) bool { return bytes.Contains(lower, []byte(hint)) }
	for _, s := range secrets {
		if s.hints == nil || slices.ContainsFunc(s.hints, contains) {
			line = s.pattern.ReplaceAll(line, []byte(s.becomes))
		}
	}
	if !slices.ContainsFunc(assignedHints, contains) {
		return line
	}
	for _, pattern := range assigned {
		line = pattern.ReplaceAllFunc(line, func(found []byte) []byte {
			parts := pattern.FindSubmatch(found)
			quote := opening.Find(parts[2])
			return slices.Concat(parts[1], quote, []byte(removed), quote)
		})
	}
	return line
}

// processes lists the processes, with the program as column 5. BusyBox has no -e.
const processes = `ps -eo pid,ppid,etime,rss,comm,args 2>/dev/null || ps -o pid,ppid,etime,rss,comm,args`

var (
	process = regexp.MustCompile(`(?m)^((?:[ \t]*\S+){4}[ \t]+(\S+)).*$`)
	// program matches the programs of a cluster and the title of the column.
	program = regexp.MustCompile(`^(COMMAND|kube-bootstrap|kubelet|kube-(apiserver|controller|scheduler|proxy)|etcd|flanneld|coredns|dockerd|containerd|containerd-shim)$`)
)

// redactProcesses removes the arguments of other programs, which may be passwords.
func redactProcesses(list []byte) []byte {
	return process.ReplaceAllFunc(list, func(line []byte) []byte {
		parts := process.FindSubmatch(line)
		if program.Match(parts[2]) {
			return line
		}
		return parts[1]
	})
}

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

// ofAUser reports whether an object is in a namespace, and that is not the system's.
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
		for _, field := range []string{"data", "binaryData"} {
			values, _ := object[field].(map[string]any)
			for key := range values {
				values[key] = removed
			}
		}
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
