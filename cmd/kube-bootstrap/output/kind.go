package output

import (
	"encoding/json"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// typeMeta says what an object is, as the first fields of objects of Kubernetes do.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// typed returns data as JSON with its type: an object begins with apiVersion and
// kind, and the objects of a list are its items, as in lists of Kubernetes.
func typed(kind string, data any) (json.RawMessage, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	if text[0] == '{' {
		return withType(kind, text)
	}
	if string(text) == "null" {
		text = []byte("[]") // a nil slice is an empty list
	}
	return json.Marshal(struct {
		typeMeta
		Items json.RawMessage `json:"items"`
	}{typeMeta{config.APIVersion, kind + "List"}, text})
}

// withType returns an object with its type before its fields.
func withType(kind string, object []byte) (json.RawMessage, error) {
	begin, err := json.Marshal(typeMeta{config.APIVersion, kind})
	if string(object) == "{}" {
		return begin, err
	}
	return slices.Concat(begin[:len(begin)-1], []byte(","), object[1:]), err
}
