package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

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
