package containerd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// importedDir contains the configs that containerd 2.2 and later imports by default.
const importedDir = "/etc/containerd/conf.d"

// checkImported returns ineffective for the current config if it imports files, which another program may write at any
// time, such as the tools of GPUs.
func (c CRI) checkImported(ctx context.Context) error {
	data, err := currentConfig(c.Pods.Files)
	if err != nil {
		return err
	}
	now, err := parseConfig(data)
	if err != nil || !now.imports(c.Pods.Files) {
		return err
	}
	return c.ineffective(ctx, data)
}

// imports reports whether containerd reads other files too.
func (c *configFile) imports(files host.Files) bool {
	return c.root["imports"] != nil || files.ExistsMatch(importedDir+"/*.toml")
}

// ConfigProblems returns the problems of the config that Enable would write [containerd-config, containerd-registry].
// It changes nothing.
func (c CRI) ConfigProblems(ctx context.Context) error {
	if MissingProblem() != nil {
		return nil
	}
	data, _, err := c.config(ctx)
	if err != nil {
		return err
	}
	return c.ineffective(ctx, data)
}

// ineffective returns the problem that containerd would not use the wanted settings with the config data: an imported
// file may replace them, and a release may ignore the names of others.
func (c CRI) ineffective(ctx context.Context, data []byte) error {
	used, err := usedConfig(ctx, data)
	if err != nil {
		return err
	}
	if at := used.address(); c.Pods.Socket == DefaultSocket && at != "" &&
		strings.TrimPrefix(at, "/var") != strings.TrimPrefix(string(c.Pods.Socket), "/var") {
		return &step.Problem{Name: "containerd-config", Text: fmt.Sprintf("%s: containerd serves at %s, and the kubelet would use %s",
			configPath, at, c.Pods.Socket),
			Remedy: "give its address with --cri-socket"}
	}
	if err := used.merge(c.wanted()); err != nil || len(used.changes) == 0 {
		return err
	}
	return &step.Problem{
		Name: "containerd-config",
		Text: fmt.Sprintf("%s: containerd would not use these settings of kube-bootstrap: %s",
			configPath, strings.Join(used.changes, ", ")),
		Remedy: "remove their other values from the files that it imports (its `imports`, and " + importedDir +
			"); `containerd config dump` shows what is used",
	}
}

// address returns the path of the socket. In version 4, it is the configuration of a plugin.
func (c *configFile) address() string {
	older, _ := c.get("grpc", "address").(string)
	newer, _ := c.get("plugins", "io.containerd.server.v1.grpc", "address").(string)
	return cmp.Or(newer, older)
}

// usedConfig returns what containerd would use with a config: the values of imported files and the defaults too.
func usedConfig(ctx context.Context, data []byte) (*configFile, error) {
	installed, err := installedVersion(ctx)
	if err != nil {
		return nil, err
	}
	command := "dump"
	// https://github.com/containerd/containerd/issues/11600: until 2.0.5, dump ignores settings of
	// version 2
	if installed.Major() >= 2 {
		command = "migrate"
	}
	data, err = withAbsoluteImports(data)
	if err != nil {
		return nil, err
	}
	var text string
	err = host.WithTempFile("containerd-*.toml", data, func(path string) (err error) {
		text, err = host.Run(ctx, "containerd", "--config", path, "config", command)
		return err
	})
	if _, refused := errors.AsType[*host.CommandError](err); refused {
		return nil, configProblem("containerd would not start with it: " + err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", configPath, err)
	}
	return parseConfig([]byte(text))
}

// withAbsoluteImports returns a config that imports the same files from another directory.
func withAbsoluteImports(data []byte) ([]byte, error) {
	root := map[string]any{}
	if err := toml.Unmarshal(data, &root); err != nil {
		return nil, configProblem(err.Error())
	}
	imports, _ := root["imports"].([]any)
	for i, path := range imports {
		if path, ok := path.(string); ok && !filepath.IsAbs(path) {
			imports[i] = filepath.Join(filepath.Dir(configPath), path)
		}
	}
	return toml.Marshal(root)
}
