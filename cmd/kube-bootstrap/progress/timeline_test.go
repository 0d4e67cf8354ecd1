package progress

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

type closed struct{ io.Writer }

func (closed) Close() error { return nil }

// timelineOf writes a run of two hosts. Host "one" starts etcd, then loads, pulls and
// copies. Host "two" waits until 6 s. Its last steps are interrupted.
func timelineOf() string {
	var out bytes.Buffer
	r := NewTimeline(closed{&out}, "title")
	for _, e := range []step.Event{
		{At: at(0), Stage: 0, Step: "one: start etcd", Kind: step.Started},
		{At: at(2), Stage: 0, Step: "one: start etcd", Kind: step.Done},
		{At: at(2), Stage: 1, Step: "one: load", Kind: step.Started},
		{At: at(2), Stage: 1, Step: "two: wait", Kind: step.Started},
		{At: at(2), Stage: 1, Step: "one: pull", Kind: step.Started},
		{At: at(3), Stage: 1, Step: "one: pull", Kind: step.Note, Message: "the step goes on"},
		{At: at(3), Stage: 1, Step: "one: load", Kind: step.Done},
		{At: at(3), Stage: 1, Step: "one: copy", Kind: step.Started},
		{At: at(4), Stage: 1, Step: "one: copy", Kind: step.Failed},
		{At: at(5), Stage: 1, Step: "one: pull", Kind: step.Done},
		{At: at(6), Stage: 1, Step: "two: wait", Kind: step.Done},
		{At: at(6), Stage: 2, Step: "two: join", Kind: step.Started},
		{At: at(7), Stage: 2, Step: "two: other", Kind: step.Started},
	} {
		r.Event(e)
	}
	r.Close()
	return out.String()
}

func TestTimelineForPerfetto(t *testing.T) {
	var file struct {
		TraceEvents []traceEvent
		OtherData   map[string]string
	}
	must.NoError(t, json.Unmarshal([]byte(timelineOf()), &file))
	found := map[string]traceEvent{}
	var critical []string
	for _, e := range file.TraceEvents {
		if e.Args["critical"] == true {
			critical = append(critical, e.Name)
		}
		found[e.Phase+" "+e.Name] = e
	}
	load, pull, copied, wait, join := found["X load"], found["X pull"], found["X copy"],
		found["X wait"], found["X join"]
	switch {
	case load.At != 2_000_000 || load.Duration != 1_000_000:
		t.Errorf("load: %+v", load)
	case load.Thread != copied.Thread || copied.Args["failed"] != true:
		t.Errorf("copy follows load: %+v", copied)
	case wait.Process == load.Process:
		t.Errorf("wait is on another host: %+v", wait)
	case pull.Thread == load.Thread:
		t.Errorf("pull and load run at the same time: %+v, %+v", pull, load)
	case join.Duration != 1_000_000:
		t.Errorf("join was interrupted at the end: %+v", join)
	case strings.Join(critical, ", ") != "start etcd, pull, wait, join":
		t.Errorf("these steps determine how long a host took: %q", critical)
	case file.OtherData["title"] != "title" || found["M process_name"].Args["name"] != "two":
		t.Errorf("names: %+v", file)
	}
}
