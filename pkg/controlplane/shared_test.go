package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestSharedFilesAreCompleteAndValid(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	good, err := Shared(c.Files)
	must.NoError(t, err)
	must.NoError(t, CheckShared(good))
	for i, file := range good {
		missing := slices.Delete(slices.Clone(good), i, i+1)
		if err := CheckShared(missing); err == nil || !strings.Contains(err.Error(), file.Path) {
			t.Errorf("without %s: %v", file.Path, err)
		}
		damaged := slices.Clone(good)
		damaged[i] = host.File{Path: file.Path, Data: []byte("damaged")}
		derived := file.Path == accountPublic || file.Path == crossFile // from another file, or may be empty
		if err := CheckShared(damaged); (err == nil) != derived {
			t.Errorf("with a damaged %s: %v", file.Path, err)
		}
	}
}
