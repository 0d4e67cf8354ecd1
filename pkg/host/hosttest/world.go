// Package hosttest holds what tests of a host share: a printout of everything
// on it that can be changed, and the contract that every step keeps.
package hosttest

import (
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// WorldScript is a shell script that prints a host, one fact a line.
//
//go:embed world.sh
var WorldScript string

// Diff returns the lines that only before or only after has, marked with - and +.
func Diff(before, after string) []string {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[line]--
	}
	for line := range strings.Lines(after) {
		count[line]++
	}
	var diff []string
	for line, n := range count {
		for ; n < 0; n++ {
			diff = append(diff, "- "+strings.TrimSpace(line))
		}
		for ; n > 0; n-- {
			diff = append(diff, "+ "+strings.TrimSpace(line))
		}
	}
	slices.SortFunc(diff, func(a, b string) int { return strings.Compare(a[2:]+a, b[2:]+b) })
	return diff
}

// Tree returns a function that prints all files below root, except the list of created
// directories, which the last of all steps removes.
func Tree(t *testing.T, root string) func() string {
	return func() string {
		var b strings.Builder
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			name := strings.TrimPrefix(path, root)
			if err != nil || name == host.StateDir+"/made-dirs" || strings.HasPrefix(host.StateDir+"/", name+"/") {
				return err
			}
			return printFile(&b, path, name, d)
		})
		must.NoError(t, err)
		return b.String()
	}
}

func printFile(b *strings.Builder, path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	target, _ := os.Readlink(path)
	fmt.Fprintln(b, name, info.Mode(), target)
	if !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	fmt.Fprintf(b, "%s %q\n", name, data)
	return err
}
