package output

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestFormatsOfAList(t *testing.T) {
	columns := []Column[node]{
		{Head: "NODE", Cell: func(n node) string { return n.Name }},
		{Head: "LONG", Cell: func(n node) string { return n.Name + n.Name }, Wide: true},
	}
	all := []node{{"a", true}, {"b", false}}
	for _, c := range []struct {
		format Format
		all    []node
		want   string
	}{
		{"table", all, "NODE\na\nb\n"},
		{"wide", all, "NODE   LONG\na      aa\nb      bb\n"},
		{"name", all, "a\nb\n"},
		{"name", nil, ""},
		{"yaml", all[:1], "apiVersion: kube-bootstrap.dev/v1alpha1\nitems:\n- name: a\n  ready: true\nkind: NodeList\n"},
		{"yaml", nil, "apiVersion: kube-bootstrap.dev/v1alpha1\nitems: []\nkind: NodeList\n"},
		{"jsonpath={.kind}", nil, "NodeList\n"},
	} {
		var out bytes.Buffer
		if err := printList(c.format, &out, "Node", c.all, columns); err != nil || out.String() != c.want {
			t.Errorf("%s of %v: %q, %v, want %q", c.format, c.all, out.String(), err, c.want)
		}
	}
}

func TestAnObjectBeginsWithItsType(t *testing.T) {
	var out bytes.Buffer
	want := "{\n  \"apiVersion\": \"kube-bootstrap.dev/v1alpha1\",\n  \"kind\": \"Node\",\n  \"name\": \"a\",\n  " +
		"\"ready\": true\n}\n"
	if err := Format("json").Print(&out, "Node", node{"a", true}, nil); err != nil || out.String() != want {
		t.Errorf("%q, %v, want %q", out.String(), err, want)
	}
}

func TestAnObjectWithoutFieldsHasItsType(t *testing.T) {
	var out bytes.Buffer
	if err := Format("jsonpath={.kind}").Print(&out, "Empty", struct{}{}, nil); err != nil ||
		out.String() != "Empty\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestOnlyListsHaveNamesAndWideTables(t *testing.T) {
	for _, format := range []string{wide, name} {
		object, list := Format(format).check(Formats, Words), Format(format).check(listFormats, listWords)
		if object == nil || list != nil {
			t.Errorf("%s: for one object %v, for a list %v", format, object, list)
		}
	}
	if Format("xml").check(listFormats, listWords) == nil {
		t.Error("xml is accepted")
	}
}

// TestATableControlsNoTerminal: a node writes some of its fields itself.
func TestATableControlsNoTerminal(t *testing.T) {
	var out strings.Builder
	columns := []Column[string]{{Head: "VERSION", Cell: func(s string) string { return s }}}
	for _, format := range []Format{Table, wide, name} {
		out.Reset()
		must.NoError(t, printList(format, &out, "Node", []string{"v1\x1b[2J\u009b2J"}, columns))
		if strings.ContainsAny(out.String(), "\x1b\u009b") || !strings.Contains(out.String(), `v1\x1b[2J\u009b2J`) {
			t.Errorf("%s: %q", format, out.String())
		}
	}
}
