package containerd

import (
	"cmp"
	"context"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	defaultRoot  = "/var/lib/containerd"
	defaultState = "/run/containerd"
)

// Dirs are the directories of persistent and of temporary data of containerd.
type Dirs struct{ Root, State string }

// FindDirs returns the directories that containerd uses with its current config, and the default ones if the config
// cannot be read: other checks report that, and turndown must not fail for it.
func FindDirs(files host.Files) Dirs {
	found := Dirs{defaultRoot, defaultState}
	c, err := readDirs(files)
	if err != nil {
		return found
	}
	root, _ := c.root["root"].(string)
	state, _ := c.root["state"].(string)
	return Dirs{cmp.Or(root, found.Root), cmp.Or(state, found.State)}
}

// readDirs returns a config with the directories. It runs the program, for a moment, only if other files may set them.
func readDirs(files host.Files) (*configFile, error) {
	data, err := currentConfig(files)
	if err != nil {
		return nil, err
	}
	c, err := parseConfig(data)
	if err != nil || !c.imports(files) || MissingProblem() != nil {
		return c, err
	}
	ctx, cancel := step.Limited(context.Background())
	defer cancel()
	return usedConfig(ctx, data)
}

// at returns where a path of the default directories is. The sockets of shims, their pipes and the state of runc,
// unlike that of plugins, are always in the default directory.
func (d Dirs) at(path string) string {
	if rest, ok := strings.CutPrefix(path, defaultRoot+"/"); ok {
		return d.Root + "/" + rest
	}
	if rest, ok := strings.CutPrefix(path, defaultState+"/io.containerd."); ok {
		return d.State + "/io.containerd." + rest
	}
	return path
}
