package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
)

// TestEveryFlagHasAVariable: a variable that is known, but changes nothing, misleads:
// KUBE_BOOTSTRAP_DRY_RUN=true must not let master change the host.
func TestEveryFlagHasAVariable(t *testing.T) {
	command.Each(testRoot(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if c.Hidden || c.DisableFlagParsing || source.IsSetting(f) ||
				slices.Contains([]string{"help", "config", "name"}, f.Name) {
				return
			}
			value := map[string]string{"bool": "true", "int": "3", "duration": "7m0s", "uint16": "7",
				"output": "json"}[f.Value.Type()]
			if value == "" {
				value = "json"
			}
			env := func(name string) string { return map[string]string{config.EnvName(f.Name): value}[name] }
			if err := settings.FromEnv(env, c); err != nil || !f.Changed {
				t.Errorf("%s --%s (%s): %v", c.CommandPath(), f.Name, f.Value.Type(), err)
			}
			f.Changed = false
		})
	})
}

// TestEveryVariableOfTheSourceIsKnown: the program must not warn of a variable
// that it, its scripts or its tests use.
func TestEveryVariableOfTheSourceIsKnown(t *testing.T) {
	known := readVariables(testRoot())
	name := regexp.MustCompile(`\b(KUBE_BOOTSTRAP|K8S_DIND)_[A-Z0-9_]*[A-Z0-9]`)
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".md", ".sh"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range name.FindAllString(string(text), -1) {
			if !slices.Contains(known, found) && !strings.HasSuffix(found, "_FLAG") {
				t.Errorf("%s: %s", path, found)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
