package progress

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

type closed struct{ io.Writer }

func (closed) Close() error { return nil }

// timelineOf draws a run of two hosts. Host "one" starts etcd, then loads, pulls and
// copies. Host "two" waits until 6 s. Its last steps are interrupted.
func timelineOf(name string) string {
	var out bytes.Buffer
	r := NewTimeline(closed{&out}, name, "title")
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

func TestTimelineMarksWhatDeterminesTheRun(t *testing.T) {
	var critical []string
	for _, line := range strings.Split(timelineOf("t.svg"), "\n") {
		if _, after, is := strings.Cut(line, "<title>"); is && strings.Contains(line, " critical\"") {
			name, _, _ := strings.Cut(after, ":")
			critical = append(critical, name)
		}
	}
	if got := strings.Join(critical, ", "); got != "start etcd, pull, wait, join" {
		t.Errorf("critical: %s", got)
	}
}

func TestTimelineForPerfetto(t *testing.T) {
	var file struct {
		TraceEvents []traceEvent
		OtherData   map[string]string
	}
	must.NoError(t, json.Unmarshal([]byte(timelineOf("t.json")), &file))
	found := map[string]traceEvent{}
	for _, e := range file.TraceEvents {
		found[e.Phase+" "+e.Name] = e
	}
	load, pull, copied, wait, join := found["X load"], found["X pull"], found["X copy"], found["X wait"], found["X join"]
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
	case file.OtherData["title"] != "title" || found["M process_name"].Args["name"] != "two":
		t.Errorf("names: %+v", file)
	}
}

func TestLabelsOfATimelineAreLeftOfItsBars(t *testing.T) {
	name := strings.Repeat("wide ", 20)
	drawn := &timeline{steps: []*span{{name: name, begin: at(0), end: at(1)}, {name: "x", begin: at(0), end: at(1)}}}
	text := drawn.svg()
	if left := fmt.Sprintf(`x="%d.0" y="-12"`, drawn.labelWidth()); strings.Count(text, left) != 2 || drawn.labelWidth() < 7*len(name) {
		t.Errorf("no bar begins at %s in\n%s", left, text)
	}
}
