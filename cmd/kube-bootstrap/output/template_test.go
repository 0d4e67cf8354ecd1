package output

import (
	"bytes"
	"testing"
)

type node struct {
	Name  string `json:"name"`
	Ready bool   `json:"ready"`
}

func TestTemplates(t *testing.T) {
	one, all := node{"a", true}, []node{{"a", true}, {"b", false}}
	for _, c := range []struct {
		format Format
		data   any
		want   string
	}{
		{"jsonpath={.name}", one, "a\n"},
		{"jsonpath={.name} is {.ready}", one, "a is true\n"},
		{"jsonpath={.items[*].name}", all, "a b\n"},
		{`jsonpath={range .items[*]}{.name}={.ready};{end}`, all, "a=true;b=false;\n"},
		{`jsonpath={.items[?(@.ready==true)].name}`, all, "a\n"},
		{"go-template={{range .items}}{{.name}} {{end}}", all, "a b \n"},
	} {
		var out bytes.Buffer
		if err := c.format.Print(&out, "Node", c.data, nil); err != nil || out.String() != c.want {
			t.Errorf("%s: %q, %v, want %q", c.format, out.String(), err, c.want)
		}
	}
}

func TestCheckRefusesATemplateBeforeAnythingIsDone(t *testing.T) {
	for format, valid := range map[Format]bool{
		"table": true, "json": true, "yaml": true, "jsonpath={.a}": true, "go-template={{.a}}": true,
		"jsonpath": false, "jsonpath={.a": false, "go-template={{": false, "go-template": false,
		"template={{.a}}": false, "xml": false, "": false,
	} {
		if err := format.check(Formats, Words); (err == nil) != valid {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestAFieldThatIsMissingIsAnError(t *testing.T) {
	var out bytes.Buffer
	if err := Format("jsonpath={.no}").Print(&out, "Node", node{}, nil); err == nil {
		t.Errorf("printed %q", out.String())
	}
}
