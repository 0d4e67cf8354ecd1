package requirements

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestOnlyAStaticProgramFits(t *testing.T) {
	dir := t.TempDir()
	source, static := filepath.Join(dir, "main.go"), filepath.Join(dir, "static")
	must.Write(t, source, "package main\nfunc main() {}\n")
	build := exec.Command("go", "build", "-o", static, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if errs, err := programFit(static); len(errs) > 0 || err != nil {
		t.Errorf("a static program: %v, %v", errs, err)
	}
	errs, err := programFit("/bin/sh")
	if err != nil || len(errs) != 1 || step.Problems(errs[0])[0].Name != "program-dynamic" {
		t.Errorf("a dynamic program: %v, %v", errs, err)
	}
	errs, err = programFit(source)
	if err != nil || len(errs) != 1 || step.Problems(errs[0])[0].Name != "program-system" {
		t.Errorf("a file that is no program of Linux: %v, %v", errs, err)
	}
}
