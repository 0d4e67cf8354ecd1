// Package pages reads the commands of the documentation, which tests run as they stand there.
package pages

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Page is a page of docs: its blocks of commands in the order in which they
// stand there, and its last block of YAML.
type Page struct {
	text, YAML string
}

var fence = regexp.MustCompile("(?s)```(sh|yaml)\n(.*?)```")

// Read reads a page of docs.
func Read(t *testing.T, name string) Page {
	t.Helper()
	data := must.Read(t, filepath.Join("../../docs", name))
	p := Page{text: string(data)}
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] == "yaml" {
			p.YAML = m[2]
		}
	}
	return p
}

// Split cuts a page in two, where a heading stands.
func (p Page) Split(t *testing.T, heading string) (before, after Page) {
	t.Helper()
	first, rest, found := strings.Cut(p.text, heading+"\n")
	if !found {
		t.Fatalf("no heading %q", heading)
	}
	return Page{text: first}, Page{text: rest}
}

// Commands are the page's blocks of commands.
func (p Page) Commands() (all []string) {
	for _, m := range fence.FindAllStringSubmatch(p.text, -1) {
		if m[1] == "sh" {
			all = append(all, m[2])
		}
	}
	return all
}
