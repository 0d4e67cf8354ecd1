package preflight

import (
	"debug/elf"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// programFit returns the problem that a program needs the C library of the machine.
// It also runs in the container at the address of the cluster, which contains
// nothing else. `go install` links it so where a C compiler is installed.
func programFit(path string) ([]error, error) {
	program, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	if !slices.ContainsFunc(program.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return nil, nil
	}
	return []error{&step.Problem{
		Name: "program-dynamic", Text: "this program was built to need the C library, which the containers of a cluster need not have",
		Remedy: "build it with CGO_ENABLED=0, as `make build` does",
	}}, nil
}
