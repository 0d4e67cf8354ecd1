package hosttest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Tree returns a function that prints all files below root with their modes and
// contents. It omits the list of created directories, which the last of all
// steps removes.
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
	fmt.Fprintln(b, name, info.Mode())
	if !info.Mode().IsRegular() {
		return nil
	}
	data, err := os.ReadFile(path)
	fmt.Fprintf(b, "%s %q\n", name, data)
	return err
}
