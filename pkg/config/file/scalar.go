package file

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// isNull reports whether a node has no value, such as a block of comments.
func isNull(val *yaml.Node) bool { return val.Kind == yaml.ScalarNode && val.Tag == "!!null" }

func scalar(val *yaml.Node, kind string) (string, error) {
	switch {
	case isNull(val):
		return "", nil
	case val.Kind == yaml.ScalarNode:
		return val.Value, nil
	case val.Kind == yaml.SequenceNode && kind == "list":
		var words []string
		for _, item := range val.Content {
			if item.Kind != yaml.ScalarNode {
				return "", fmt.Errorf("must be a list of names")
			}
			words = append(words, item.Value)
		}
		return strings.Join(words, ","), nil
	case val.Kind == yaml.MappingNode && kind == "list":
		return pairs(val)
	case val.Kind == yaml.MappingNode && (kind == "arguments" || kind == "gates"):
		return argumentsOf(val)
	case val.Kind == yaml.MappingNode && kind == "mapping":
		text, err := yaml.Marshal(val)
		return string(text), err
	}
	return "", fmt.Errorf("must be a single value")
}

// pairs turns labels into the words of their flag.
func pairs(val *yaml.Node) (string, error) {
	var words []string
	for key, one := range entries(val) {
		if one.Kind != yaml.ScalarNode {
			return "", fmt.Errorf("must be names with single values")
		}
		words = append(words, key.Value+"="+one.Value)
	}
	return strings.Join(words, ","), nil
}

// argumentsOf returns a mapping on one line; "" if it is empty.
func argumentsOf(val *yaml.Node) (string, error) {
	var given config.Arguments
	if err := val.Decode(&given); err != nil {
		return "", fmt.Errorf("must be names with single values, such as {v: 4}")
	}
	if len(given) == 0 {
		return "", nil
	}
	data, err := json.Marshal(given)
	return string(data), err
}
