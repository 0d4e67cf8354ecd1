//go:build root

package main

import "testing"

// TestScriptsOfRoot runs the scripts of commands that need root or Docker.
func TestScriptsOfRoot(t *testing.T) { runScripts(t, "testdata/rootscript") }
