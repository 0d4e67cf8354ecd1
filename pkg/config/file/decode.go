// Package file reads and writes the settings as YAML: configuration files, the
// settings that a host keeps, and the settings that hosts of a cluster share.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Read changes c by the settings in the file at path. The error names each line
// that cannot be used, with its field and the remedy.
func Read(path string, c *config.Config, origins config.Origins) error {
	root, err := readDocument(path)
	if err != nil {
		return err
	}
	return decoder{path: path, strict: true}.decode(c, root, origins)
}

// largest is larger than any configuration file, in bytes.
const largest = 4 << 20

// read returns the content of a file, which may be a pipe. A device such as /dev/zero has no end.
func read(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, largest+1))
	if err == nil && len(data) > largest {
		err = fmt.Errorf("%s is larger than %d MiB; name a configuration file", path, largest>>20)
	}
	return data, err
}

func readDocument(path string) (*yaml.Node, error) {
	data, err := read(path)
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
		return nil, fmt.Errorf("line %d: must be fields with values, such as \"kind: %s\"", root.Line, config.Kind)
	}
	return root, nil
}

// A decoder reads one document.
type decoder struct {
	path   string
	strict bool // unknown fields are errors
}

func (d decoder) decode(c *config.Config, root *yaml.Node, origins config.Origins) error {
	if root == nil {
		return nil
	}
	if isPrevious(root) {
		return d.previous(c, root, origins)
	}
	seen, err := d.mapping(c, root, "", origins)
	errs := []error{err}
	for _, name := range []string{"apiVersion", "kind"} {
		if seen[name] == 0 && d.strict {
			errs = append(errs,
				d.wrong(root, name, fmt.Sprintf("missing; write \"%s: %s\"", name, config.Header[name])))
		}
	}
	return errors.Join(errs...)
}

// mapping reads the fields of a document, or of a block within it, whose names
// then begin with the block's. It returns the lines that the fields are on.
func (d decoder) mapping(
	c *config.Config, root *yaml.Node, block string, origins config.Origins,
) (map[string]int, error) {
	return d.fields(root, block, func(key, val *yaml.Node) error {
		if val.Kind == yaml.MappingNode && isBlock(block+key.Value) {
			_, err := d.mapping(c, val, block+key.Value+".", origins)
			return err
		}
		return d.field(c, key, val, block, origins)
	})
}

// fields calls read for each field of a mapping, whose names begin with path in
// errors. It returns the lines that the fields are on.
func (d decoder) fields(root *yaml.Node, path string, read func(key, val *yaml.Node) error) (map[string]int, error) {
	var errs []error
	seen := map[string]int{}
	for key, val := range entries(root) {
		if line, twice := seen[key.Value]; twice {
			errs = append(errs, d.wrong(key, path+key.Value, fmt.Sprintf("already said on line %d", line)))
			continue
		}
		seen[key.Value] = key.Line
		errs = append(errs, read(key, val))
	}
	return seen, errors.Join(errs...)
}

// entries returns the keys and values of a mapping.
func entries(mapping *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, val *yaml.Node) bool) {
		for pair := range slices.Chunk(mapping.Content, 2) {
			if !yield(pair[0], pair[1]) {
				return
			}
		}
	}
}

func isBlock(name string) bool {
	return slices.ContainsFunc(config.Settings(config.Every),
		func(s config.Setting) bool { return strings.HasPrefix(s.Field, name+".") })
}

func (d decoder) field(c *config.Config, key, val *yaml.Node, block string, origins config.Origins) error {
	if want, ok := config.Header[key.Value]; ok && block == "" {
		if val.Value != want {
			return d.wrong(val, key.Value, fmt.Sprintf("%q is not known; write %s", val.Value, want))
		}
		return nil
	}
	name := block + key.Value
	if isNull(val) && (name == config.NodesField || isBlock(name)) {
		return nil
	}
	if name == config.NodesField {
		return d.nodes(c, val, origins)
	}
	s, known := config.Find(name)
	switch {
	case !known && !d.strict:
		return nil
	case !known && isBlock(name):
		return d.wrong(key, name, "must be a block of fields, such as \""+name+": {"+fieldsOf(name)+"}\"")
	case !known:
		return d.wrong(key, name, "unknown field"+config.Suggestion(name))
	}
	return d.set(c, s, s.Field, val, origins)
}

// set changes a setting to the value that the file has under path. An empty list or mapping
// is a value: it replaces the default, as an empty flag does. An empty word is none.
func (d decoder) set(c *config.Config, s config.Setting, path string, val *yaml.Node, origins config.Origins) error {
	raw, err := scalar(val, s.Kind())
	if err == nil && (raw != "" || val.Kind != yaml.ScalarNode) {
		origins[path] = d.origin(val)
		err = s.Set(c, raw)
	}
	if err != nil {
		return d.wrong(val, path, fmt.Sprintf("%q: %v", s.Excerpt(raw), err))
	}
	return nil
}

func (d decoder) origin(at *yaml.Node) config.Origin {
	source := config.FromFile
	if d.path == config.SavedPath {
		source = config.FromHost
	}
	return config.Origin{Source: source, Where: fmt.Sprintf("%s:%d", d.path, at.Line)}
}

func fieldsOf(block string) string {
	var names []string
	for _, s := range config.Settings(config.Every) {
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

// lastSaved is the last field that Marshal always writes: a file without it was cut.
const lastSaved = "keepImages"

// ReadSaved reads what Marshal wrote, at path. Fields of another version of
// the program are passed over: what was set up must stay removable. A file that
// is empty or was cut is an error, as defaults would take the place of what is
// missing.
func ReadSaved(path string) (config.Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return config.Config{}, fmt.Errorf("read saved settings: %w", err)
	}
	return Saved(path, data)
}

// Saved is ReadSaved for the content of the file.
func Saved(path string, data []byte) (config.Config, error) {
	cfg := config.Default()
	root, err := document(data)
	switch {
	case err != nil:
	case root == nil:
		err = errors.New("it is empty")
	case !slices.ContainsFunc(root.Content, func(n *yaml.Node) bool { return n.Value == lastSaved }):
		err = errors.New("it is not complete")
	default:
		err = decoder{path: path}.decode(&cfg, root, config.Origins{})
	}
	if err != nil {
		return config.Config{}, fmt.Errorf("read saved settings: %w", err)
	}
	return cfg.Complete(), nil
}
