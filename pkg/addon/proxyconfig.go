package addon

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// ProxyConfig returns the configuration of kube-proxy with the user's fields in
// place of the same fields.
func (s Settings) ProxyConfig() (string, error) {
	var own bytes.Buffer
	if err := templates.ExecuteTemplate(&own, "kube-proxy-config.yaml", s); err != nil || s.ProxyFields == "" {
		return own.String(), err
	}
	var fields, further map[string]any
	if err := yaml.Unmarshal(own.Bytes(), &fields); err != nil {
		return "", err
	}
	if err := yaml.Unmarshal([]byte(s.ProxyFields), &further); err != nil {
		return "", fmt.Errorf("further fields of kube-proxy: %w", err)
	}
	merge(fields, further)
	merged, err := yaml.Marshal(fields)
	return string(merged), err
}

// merge puts fields into others; a field of both with fields of its own is
// merged too.
func merge(into, fields map[string]any) {
	for name, value := range fields {
		inner, isInner := value.(map[string]any)
		if old, both := into[name].(map[string]any); both && isInner {
			merge(old, inner)
			continue
		}
		into[name] = value
	}
}
