package components

import (
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
			return err == nil && slices.ContainsFunc(known, func(k string) bool { return k == form || isPrefix && strings.HasPrefix(k, prefix) })
		})
	}
	var kubernetes []string
	for program, kept := range keptFlags {
		if program != "etcd" {
			kubernetes = append(kubernetes, program)
		}
		for form := range kept {
			if !has(form, program) {
				t.Errorf("%s has no flag %s", program, form)
			}
		}
	}
	for form := range keptByKubernetes {
		if !has(form, kubernetes...) {
			t.Errorf("no component has a flag %s", form)
		}
	}
}
