package file

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/previous"
)

// Migrate converts a file of the previous tools.
func Migrate(path string) ([]byte, error) {
	var given config.Config
	root, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	if root == nil || !isPrevious(root) {
		return nil, fmt.Errorf("%s is not a file of the previous tools, so there is nothing to migrate", path)
	}
	origins := config.Origins{}
	if err := (decoder{path: path, strict: true}).decode(&given, root, origins); err != nil {
		return nil, err
	}
	return encodeTree(tree(given, func(s config.Setting) (bool, string) {
		return origins[s.Field].Source == config.FromFile, ""
	}))
}

func isPrevious(root *yaml.Node) bool {
	old := false
	for key := range entries(root) {
		if _, ours := config.Header[key.Value]; ours {
			return false
		}
		old = old || slices.Contains(previous.Sections, key.Value)
	}
	return old
}

func (d decoder) previous(c *config.Config, root *yaml.Node, origins config.Origins) error {
	var errs []error
	for section, fields := range entries(root) {
		switch {
		case section.Value == "verbose": // the verbosity is not a setting of the cluster
		case !slices.Contains(previous.Sections, section.Value):
			errs = append(errs,
				d.wrong(section, section.Value, "unknown section; there are "+strings.Join(previous.Sections, ", ")))
		case isNull(fields): // all lines of the block are comments
		case fields.Kind != yaml.MappingNode:
			errs = append(errs, d.wrong(fields, section.Value, "must be fields with values"))
		default:
			for key, val := range entries(fields) {
				errs = append(errs, d.previousField(c, section.Value+"."+key.Value, key, val, origins))
			}
		}
	}
	return errors.Join(errs...)
}

func (d decoder) previousField(c *config.Config, path string, key, val *yaml.Node, origins config.Origins) error {
	if remedy, known := previous.Remedies[path]; known {
		if val.Value == "" || val.Value == "false" {
			return nil
		}
		return d.wrong(key, path, "is no more; "+remedy)
	}
	if path == "source.buildHyperkube" {
		return nil // images are always built from source here
	}
	s, known := previous.Setting(path)
	if !known {
		return d.wrong(key, path, "unknown field"+previous.Suggestion(path))
	}
	if err := d.set(c, s, s.Field, val, origins); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
