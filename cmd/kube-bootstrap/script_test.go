package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kube-bootstrap": main})
}

// TestScripts runs the real program as a user does; each script is a page of
// commands with what they print.
func TestScripts(t *testing.T) { runScripts(t, "testdata/script") }

func runScripts(t *testing.T, dir string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBE_BOOTSTRAP_CONFIG", "")
			newest := catalog.Newest()
			env.Setenv("NEWEST", newest.Patch)
			env.Setenv("NEWEST_MINOR", newest.String())
			env.Setenv("NEWEST_ETCD", newest.Etcd)
			env.Setenv("NEWEST_COREDNS", newest.CoreDNS)
			env.Setenv("NEWEST_PAUSE", newest.Pause)
			env.Setenv("SUPPORTED", catalog.Supported())
			return nil
		},
	})
}
