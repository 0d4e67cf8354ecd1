package components

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// TestKeptFlagsExist checks that every flag that is refused by name exists.
func TestKeptFlagsExist(t *testing.T) {
	has := func(form string, programs ...string) bool {
		prefix, isPrefix := strings.CutSuffix(form, "*")
		return slices.ContainsFunc(programs, func(program string) bool {
			release := catalog.Newest().Patch
			if program == "etcd" {
				release = catalog.Newest().Etcd
			}
			known, err := catalog.KnownFlags(program, release)
			return err == nil &&
				slices.ContainsFunc(known,
					func(k string) bool { return k == form || isPrefix && strings.HasPrefix(k, prefix) })
		})
	}
	var kubernetes []string
	for program := range kept().Flags {
		if program != "etcd" && program != "kubernetes" {
			kubernetes = append(kubernetes, program)
		}
	}
	for program, kept := range kept().Flags {
		of := []string{program}
		if program == "kubernetes" {
			of = kubernetes
		}
		for _, form := range slices.Concat(slices.Collect(maps.Values(kept))...) {
			if !has(form, of...) {
				t.Errorf("%s has no flag %s", program, form)
			}
		}
	}
}
