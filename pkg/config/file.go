package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFile takes over what the file at path says. It knows every line it can
// not use by number, field and remedy.
func (c *Config) readFile(path string, origins Origins) error {
	root, err := readDocument(path)
	if err != nil {
		return err
	}
	return decoder{path: path, strict: true}.decode(c, root, origins)
}

func readDocument(path string) (*yaml.Node, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	root, err := document(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return root, nil
}

// document returns the one mapping that data holds; nil if it is empty.
func document(data []byte) (*yaml.Node, error) {
	in := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := in.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	if in.Decode(&more) == nil {
		return nil, fmt.Errorf("line %d: a second document; put everything into one", more.Line)
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: must be fields with values, such as \"kind: %s\"", root.Line, Kind)
	}
	return root, nil
}

type decoder struct {
	path   string
	strict bool // unknown fields are errors
}

func (d decoder) decode(c *Config, root *yaml.Node, origins Origins) error {
	if root == nil {
		return nil
	}
	if isOld(root) {
		return d.old(c, root, origins)
	}
	seen, err := d.mapping(c, root, "", origins)
	errs := []error{err}
	for _, name := range []string{"apiVersion", "kind"} {
		if seen[name] == 0 && d.strict {
			errs = append(errs, d.wrong(root, name, fmt.Sprintf("missing; write \"%s: %s\"", name, header[name])))
		}
	}
	return errors.Join(errs...)
}

// mapping reads the fields of a document, or of a block within it, whose names
// then begin with the block's. It returns the lines that the fields are on.
func (d decoder) mapping(c *Config, root *yaml.Node, block string, origins Origins) (map[string]int, error) {
	var errs []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, val := root.Content[i], root.Content[i+1]
		if line, twice := seen[key.Value]; twice {
			errs = append(errs, d.wrong(key, block+key.Value, fmt.Sprintf("already said on line %d", line)))
			continue
		}
		seen[key.Value] = key.Line
		if val.Kind == yaml.MappingNode && isBlock(block+key.Value) {
			_, err := d.mapping(c, val, block+key.Value+".", origins)
			errs = append(errs, err)
			continue
		}
		errs = append(errs, d.field(c, key, val, block, origins))
	}
	return seen, errors.Join(errs...)
}

func isBlock(name string) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return strings.HasPrefix(s.Field, name+".") })
}

var header = map[string]string{"apiVersion": APIVersion, "kind": Kind}

func (d decoder) field(c *Config, key, val *yaml.Node, block string, origins Origins) error {
	if want, ok := header[key.Value]; ok && block == "" {
		if val.Value != want {
			return d.wrong(val, key.Value, fmt.Sprintf("%q is not known; write %s", val.Value, want))
		}
		return nil
	}
	name := block + key.Value
	if isNull(val) && (name == nodesField || isBlock(name)) {
		return nil
	}
	if name == nodesField {
		return d.nodes(c, val, origins)
	}
	s, known := byField(name)
	switch {
	case !known && !d.strict:
		return nil
	case !known && isBlock(name):
		return d.wrong(key, name, "must be a block of fields, such as \""+name+": {"+fieldsOf(name)+"}\"")
	case !known:
		return d.wrong(key, name, "unknown field"+suggestion(name))
	}
	return d.set(c, s, s.Field, val, origins)
}

// set takes over the value of a setting that stands in the file under path.
func (d decoder) set(c *Config, s Setting, path string, val *yaml.Node, origins Origins) error {
	raw, err := scalar(val, s.at(c).kind)
	if err == nil && raw != "" {
		origins[path] = d.origin(val)
		err = s.at(c).set(raw)
	}
	if err != nil {
		return d.wrong(val, path, fmt.Sprintf("%q: %v", s.masked(raw), err))
	}
	return nil
}

func (d decoder) origin(at *yaml.Node) Origin {
	source := FromFile
	if d.path == SavedPath {
		source = FromHost
	}
	return Origin{source, fmt.Sprintf("%s:%d", d.path, at.Line)}
}

func fieldsOf(block string) string {
	var names []string
	for _, s := range settings {
		if name, ok := strings.CutPrefix(s.Field, block+"."); ok && !s.Secret {
			name, _, _ = strings.Cut(name, ".")
			names = append(names, name+": ...")
		}
	}
	return strings.Join(names[:min(2, len(names))], ", ")
}

func (d decoder) wrong(at *yaml.Node, name, text string) error {
	return fmt.Errorf("%s:%d: %s: %s", d.path, at.Line, name, text)
}

// isNull reports whether a node has no value, for example because all lines of
// a block are comments.
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
	for i := 0; i+1 < len(val.Content); i += 2 {
		if val.Content[i+1].Kind != yaml.ScalarNode {
			return "", fmt.Errorf("must be names with single values")
		}
		words = append(words, val.Content[i].Value+"="+val.Content[i+1].Value)
	}
	return strings.Join(words, ","), nil
}

func byField(name string) (Setting, bool) {
	for _, s := range settings {
		if s.Field == name {
			return s, true
		}
	}
	return Setting{}, false
}

// suggestion names the field that was probably meant, by flag, by environment
// name or by its letters.
func suggestion(name string) string {
	var fields []string
	for _, s := range settings {
		if name == s.Flag || name == s.Env {
			return fmt.Sprintf(", did you mean %s?", s.Field)
		}
		fields = append(fields, s.Field)
	}
	if best := Nearest(name, fields); best != "" {
		return fmt.Sprintf(", did you mean %s?", best)
	}
	return "; `kube-bootstrap config init` prints all there are"
}

// Nearest returns the one of known that name was probably meant to be: at most
// three typing errors away. Empty if there is none.
func Nearest(name string, known []string) string {
	best, distance := "", 4
	for _, k := range known {
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// edits counts the letters to change, add or drop to get from a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
