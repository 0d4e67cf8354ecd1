package main

import (
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

func TestDocument(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/program"},
		Deps: []*debug.Module{
			{Path: "example.com/a/v2", Version: "v2.0.1"},
			{Path: "example.com/old", Version: "v1.0.0",
				Replace: &debug.Module{Path: "example.com/new", Version: "v1.1.0"}},
		},
	}
	d := documentOf(info, "program-linux-arm", "v1.2.3", "abcd", time.Unix(0, 0))
	var ids, urls []string
	for _, p := range d.Packages {
		ids, urls = append(ids, p.ID), append(urls, p.Refs[0].Locator)
	}
	if got := strings.Join(ids,
		" "); got != "SPDXRef-example.com-program SPDXRef-stdlib SPDXRef-example.com-a-v2 SPDXRef-example.com-new" {
		t.Error(got)
	}
	if got := strings.Join(urls,
		" "); got != "pkg:golang/example.com/program@v1.2.3 pkg:golang/stdlib@go1.26.8 "+
		"pkg:golang/example.com/a/v2@v2.0.1 pkg:golang/example.com/new@v1.1.0" {
		t.Error(got)
	}
	if len(d.Relationships) != 4 || d.Relationships[0].Related != ids[0] ||
		d.Relationships[3] != (relationship{ids[0], "DEPENDS_ON", ids[3]}) {
		t.Errorf("%+v", d.Relationships)
	}
	if d.Creation.Created != "1970-01-01T00:00:00Z" || d.Packages[0].Checksums[0].Value != "abcd" {
		t.Errorf("%+v", d)
	}
}
