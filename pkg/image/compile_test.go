package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestCompileLog(t *testing.T) {
	var told []string
	l := &compileLog{
		what: "compile etcd", then: "link", total: 2, report: func(message string) { told = append(told, message) },
	}
	l.reportCount()
	for _, text := range []string{
		"go: downloading k8s.io/api v0.36.3\nk8s.io/api/co", "re/v1\n",
		"./main.go:3:1: syntax error\nk8s.io/api/apps/v1\n",
	} {
		_, _ = l.Write([]byte(text))
	}
	want := []string{
		"compile etcd: 0 of 2 packages", "compile etcd: download k8s.io/api v0.36.3", "compile etcd: 1 of 2 packages",
		"compile etcd: link",
	}
	if !slices.Equal(told, want) || l.tail() != "./main.go:3:1: syntax error" {
		t.Errorf("%q, tail %q", told, l.tail())
	}
}

// TestCompilationsCountTheirPackages compiles a program and a test program with
// the real toolchain. No build cache contains their packages.
func TestCompilationsCountTheirPackages(t *testing.T) {
	work, unique := t.TempDir(), fmt.Sprintf("\nconst X = %d\n", time.Now().UnixNano())
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.24\n", "a/a.go": "package a\n" + unique, "b/b.go": "package b\n" + unique,
		"c/c.go":            "package c\n" + unique,
		"main.go":           "package main\n\nimport _ \"x/a\"\n\nfunc main() {}\n",
		"from/t/x_test.go":  "package t\n\nimport (\n\t\"testing\"\n\n\t_ \"x/b\"\n)\n\nfunc TestX(*testing.T) {}\n",
		"from/t/package.go": "package t\n",
	} {
		path := filepath.Join(work, name)
		must.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
	}
	var told []string
	ctx := step.WithReporter(t.Context(), func(text string, _, _ int64) { told = append(told, text) })
	r := Recipe{Name: "one", Version: "v1", Main: "pause.go.tmpl", Packages: []string{"."}, Tests: []string{"./from/t"}}
	c, err := (&Builder{goVersion: "go1.24"}).compilation(ctx, r, runtime.GOARCH)
	must.NoError(t, err)
	c.beside = "package t\n"
	must.NoError(t, c.buildAll(ctx, work, t.TempDir()))
	c.recipe.Packages = []string{"./c"}
	must.NoError(t, c.list(ctx, work, io.Discard))
	if want := fmt.Sprintf("compile Kubernetes v1 for %s: compare", runtime.GOARCH); !slices.Contains(told, want) {
		t.Errorf("no %q in %q", want, told)
	}
	for _, program := range []string{"one", "t.test"} {
		for _, state := range []string{"0 of ", "link"} {
			want := fmt.Sprintf("compile %s v1 for %s: %s", program, runtime.GOARCH, state)
			if !slices.ContainsFunc(told, func(text string) bool { return strings.HasPrefix(text, want) }) {
				t.Errorf("no %q in %q", want, told)
			}
		}
	}
}
