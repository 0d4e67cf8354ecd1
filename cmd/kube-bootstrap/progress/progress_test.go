package progress

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var start = time.Date(2026, time.November, 21, 5, 50, 1, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func events() []step.Event {
	return []step.Event{
		{At: at(-1), Stage: -1, Step: "preflight", Kind: step.Started},
		{At: at(-0.5), Stage: -1, Step: "preflight", Kind: step.Done},
		{At: at(0), Step: "look", Kind: step.UpToDate},
		{At: at(0), Stage: 1, Step: "load <images>", Kind: step.Started, Diff: step.Diff{"load 2 images"}},
		{At: at(0), Stage: 1, Step: "start etcd", Kind: step.Started},
		{At: at(1), Stage: 1, Step: "load <images>", Kind: step.Progress, Message: "hyperkube",
			Bytes: 1e6, Total: 130e6},
		{At: at(1.25), Stage: 1, Step: "start etcd", Kind: step.Done},
		{At: at(12), Stage: 1, Step: "load <images>", Kind: step.Progress, Message: "hyperkube",
			Bytes: 20e6, Total: 130e6},
		{At: at(13), Stage: 1, Step: "load <images>", Kind: step.Progress, Message: "hyperkube",
			Bytes: 30e6, Total: 130e6},
		{At: at(90), Stage: 1, Step: "load <images>", Kind: step.Failed, Err: errors.New("no space")},
	}
}

func draw(r Reporter) {
	for _, e := range events() {
		r.Event(e)
	}
	r.Close()
}

func TestPlain(t *testing.T) {
	var out bytes.Buffer
	draw(newPlain(&out, quiet))
	want := `+++ [1121 05:50:00] preflight
+++ [1121 05:50:00] preflight: done in 0.5s
+++ [1121 05:50:01] look: up to date
+++ [1121 05:50:01] load <images>
+++ [1121 05:50:01] start etcd
+++ [1121 05:50:02] start etcd: done in 1.2s
+++ [1121 05:50:13] load <images>: 12s, hyperkube 20 of 130 MB, 1.7 MB/s, 1m4s left
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestPlainRemindsOfASilentStep(t *testing.T) {
	var out bytes.Buffer
	r := newPlain(&out, quiet)
	defer r.Close()
	r.Event(step.Event{At: at(0), Step: "build", Kind: step.Started})
	r.Event(step.Event{At: at(1), Step: "build", Kind: step.Progress, Message: "compile kubelet\nwith cgo"})
	out.Reset()
	r.remind(at(9))
	r.remind(at(10))
	r.remind(at(19))
	r.remind(at(95))
	want := "+++ [1121 05:50:11] build: 10s, compile kubelet\n+++ [1121 05:51:36] build: 1m35s, compile kubelet\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	r.Event(step.Event{At: at(95), Step: "build", Kind: step.Note, Message: "kubelet is old"})
	if want := "+++ [1121 05:51:36] kubelet is old\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	r.Event(step.Event{At: at(96), Step: "build", Kind: step.Failed, Err: errors.New("no space")})
	r.remind(at(200))
	if out.String() != "" {
		t.Errorf("told of an ended step: %s", out.String())
	}
}

func TestVerbosePlainTellsEverySecond(t *testing.T) {
	var out bytes.Buffer
	r := newPlain(&out, time.Second)
	defer r.Close()
	r.Event(step.Event{At: at(0), Step: "build", Kind: step.Started})
	out.Reset()
	for i, message := range []string{"compile kubelet", "link kubelet"} {
		r.Event(step.Event{At: at(float64(1 + i)), Step: "build", Kind: step.Progress, Message: message})
	}
	want := "+++ [1121 05:50:02] build: 1.0s, compile kubelet\n+++ [1121 05:50:03] build: 2.0s, link kubelet\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestPlainRunOfTests prints the names of running tests whole, one per line, and
// each failure when it happens.
func TestPlainRunOfTests(t *testing.T) {
	var out bytes.Buffer
	r := newPlain(&out, quiet)
	defer r.Close()
	const long = "StatefulSet Basic StatefulSet functionality should perform canary updates and phased rolling " +
		"updates of template modifications"
	const name = "run the tests"
	r.Event(step.Event{At: at(0), Step: name, Kind: step.Started})
	r.Event(step.Event{
		At: at(1), Step: name, Kind: step.Progress, Message: "0 of 433, 0 passed, 0 failed",
		Doing: []string{"DNS should provide DNS", long},
	})
	r.remind(at(29))
	r.Event(step.Event{
		At: at(29), Step: name, Kind: step.Note, Message: "failed: [sig-cli] Kubectl diff\nkubectl.go:960\nno diff",
	})
	r.Event(step.Event{
		At: at(30), Step: name, Kind: step.Progress, Message: "2 of 433, 1 passed, 1 failed", Doing: []string{long},
	})
	r.remind(at(59))
	r.remind(at(60))
	r.Event(step.Event{At: at(70), Step: name, Kind: step.Done})
	want := `+++ [1121 05:50:01] run the tests
+++ [1121 05:50:30] failed: [sig-cli] Kubectl diff
    kubectl.go:960
    no diff
+++ [1121 05:50:31] run the tests: 30s, 2 of 433, 1 passed, 1 failed
    ` + long + `
+++ [1121 05:51:01] run the tests: 1m0s, 2 of 433, 1 passed, 1 failed
    ` + long + `
+++ [1121 05:51:11] run the tests: done in 1m10s
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	draw(New("json", false, &out))
	found := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(found) != len(events()) {
		t.Fatalf("%d lines for %d events", len(found), len(events()))
	}
	var last step.Event
	must.NoError(t, json.Unmarshal([]byte(found[len(found)-1]), &last))
	if last.Step != "load <images>" || last.Kind != step.Failed || last.Err == nil || last.Err.Error() != "no space" ||
		last.Stage != 1 || !last.At.Equal(at(90)) {
		t.Errorf("%+v", last)
	}
}
