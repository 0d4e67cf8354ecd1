package output

import (
	"encoding/json"
	"io"
	"strings"
	"text/template"

	"k8s.io/client-go/util/jsonpath"
)

// templates are the formats that have a template of the user, as in
// jsonpath={.role}. The template sees the fields that json prints.
var templates = map[string]func(text string) (execute, error){
	"jsonpath": func(text string) (execute, error) {
		t := jsonpath.New("output")
		err := t.Parse(text)
		return t.Execute, err
	},
	"go-template": func(text string) (execute, error) {
		t, err := template.New("output").Parse(text)
		return t.Execute, err
	},
}

type execute func(io.Writer, any) error

// template returns nil for a format that has no template.
func (f Format) template() (execute, error) {
	name, text, _ := strings.Cut(string(f), "=")
	if parse, ok := templates[name]; ok {
		return parse(text)
	}
	return nil, nil
}

// IsTemplate reports whether text names a format with a template, which may be
// invalid.
func IsTemplate(text string) bool {
	name, _, given := strings.Cut(text, "=")
	return given && templates[name] != nil
}

// run executes the template for the fields of an object.
func (run execute) run(out io.Writer, text json.RawMessage) error {
	var fields any
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	if err := run(out, fields); err != nil {
		return err
	}
	_, err := io.WriteString(out, "\n")
	return err
}
