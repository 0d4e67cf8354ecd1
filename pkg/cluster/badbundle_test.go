package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/bundletest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestABundleThatNeedsABase: the nodes share one bundle. A bare host may get any bundle.
func TestABundleThatNeedsABase(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	whole, update := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "update")
	writeBundle(t, whole, "")
	writeBundle(t, update, whole)
	for _, o := range []Options{{Bundle: whole}, {Bundle: update, Request: topology.Request{Hosts: []string{"a"}}}} {
		if _, err := o.withDefaults(); err != nil {
			t.Error(err)
		}
	}
	_, err := Options{Bundle: update}.withDefaults()
	if found := step.Problems(err); len(found) != 1 || found[0].Name != "bundle" ||
		!strings.Contains(found[0].Text, "as its base") {
		t.Errorf("got %v", err)
	}
}

// writeBundle writes a bundle that omits what base contains.
func writeBundle(t *testing.T, path, base string) {
	t.Helper()
	v := bundletest.Versions(t)
	b, err := bundle.NewBuilder(v, bundletest.Images(t, v, "amd64"))
	must.NoError(t, err)
	if base != "" {
		opened, err := bundle.Open(base)
		must.NoError(t, err)
		defer opened.Close()
		must.NoError(t, b.ExcludeBase(opened))
	}
	must.NoError(t, b.Write(t.Context(), path))
}
