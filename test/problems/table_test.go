package main

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheTableIsUpToDate(t *testing.T) {
	want, err := tableOf("../../pkg", "../../cmd")
	must.NoError(t, err)
	data := must.Read(t, "../../cmd/kube-bootstrap/manual/problems.json")
	var got []problem
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("cmd/kube-bootstrap/manual/problems.json is not what the source says (%v): run `make fix`", err)
	}
}

const source = `package x
const dir = "/etc/x"
func plain() error {
	return &step.Problem{Name: "plain", Text: "no " + dir, Remedy: fmt.Sprintf("give %q or %d", a, b)}
}
func made(name, remedy, text string, args ...any) error {
	return &step.Problem{Name: "x-" + name, Text: fmt.Sprintf(text, args...), Remedy: remedy}
}
func less(remedy string) error {
	return &step.Problem{Name: "less", Text: "x has " + remedy, Remedy: remedy + ", or more"}
}
func calls() error { less("some"); return made("one", "add " + more(), "has %v", 1) }
func more() string {
	if y { return "memory" }
	return "disk"
}
func either() error {
	remedy := "start it"
	if z { remedy = "stop it" }
	return &Problem{Name: fmt.Sprintf("port-%d", p), Text: z.Text(), Remedy: remedy}
}`

func TestTexts(t *testing.T) {
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "x.go"), source)
	got, err := tableOf(dir)
	want := []problem{
		{"less", []reason{{"x has some", "some, or more"}}},
		{"plain", []reason{{"no /etc/x", "give … or …"}}},
		{"port-NAME", []reason{{"…", "start it"}, {"…", "stop it"}}},
		{"x-one", []reason{{"has …", "add disk"}, {"has …", "add memory"}}},
	}
	if err != nil || !slices.EqualFunc(got, want, func(a, b problem) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("%+v, %v", got, err)
	}
}
