//go:build e2e

package e2e

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// page is a page of docs: its blocks of commands in the order in which they
// stand there, and its last block of YAML.
type page struct {
	text, yaml string
}

var fence = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")

func readPage(t *testing.T, name string) page {
	t.Helper()
	data := must.Read(t, filepath.Join("../../docs", name))
	p := page{text: string(data)}
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] == "yaml" {
			p.yaml = m[2]
		}
	}
	return p
}

// split cuts a page in two, where a heading stands.
func (p page) split(t *testing.T, heading string) (before, after page) {
	t.Helper()
	first, rest, found := strings.Cut(p.text, heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	return page{text: first}, page{text: rest}
}

// commands are the page's blocks of commands.
func (p page) commands() (all []string) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] == "sh" {
			all = append(all, m[2])
		}
	}
	return all
}
