package image

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// stub is a module that replaces another one, whose package a program imports
// and does not need. The module has this one package, of one file.
type stub struct {
	Module  string // the replaced module
	Package string // directory of the package in the module
	Source  string // file below recipes
}

// frrAPI replaces the API of FRR-K8s: without it, MetalLB announces no address by
// BGP with FRR-K8s.
var frrAPI = stub{Module: "github.com/metallb/frr-k8s", Package: "api/v1beta1", Source: "frrk8s.go.tmpl"}

// stubDir is the prefix of the directories of stubs in the module of a recipe.
const stubDir = "./stub-"

// dir returns the directory of the module, below that of the recipe's module.
func (s stub) dir() string { return stubDir + path.Base(s.Module) }

// write writes the module below the directory of the recipe's module.
func (s stub) write(work, source, goVersion string) error {
	module := filepath.Join(work, s.dir())
	if err := os.MkdirAll(filepath.Join(module, s.Package), 0o755); err != nil {
		return err
	}
	mod := fmt.Sprintf("module %s\n\ngo %s\n", s.Module, goVersion)
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(module, s.Package, "stub.go"), []byte(source), 0o644)
}
