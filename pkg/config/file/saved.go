package file

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// lastSaved is the last field that Marshal writes in every case: a file without
// it was cut.
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
