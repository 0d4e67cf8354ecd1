package suite

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/e2e"
)

// progress reads the events of the tests, one per line, while they run.
type progress struct {
	remote.Lines
	now    func() time.Time
	report func(line string, running []string) // called with the progress of the run and the names of the running tests
	tell   func(text string)                   // called for each failure

	total   int // number of tests to run
	started time.Time
	running []string // in the order of their start
	counts  Result
}

func newProgress(total int, now func() time.Time, report func(string, []string), tell func(string)) *progress {
	p := &progress{total: total, now: now, report: report, tell: tell, started: now()}
	p.Do = func(line []byte) {
		var e e2e.TestEvent
		if json.Unmarshal(line, &e) == nil { // skip a truncated line
			p.event(e)
		}
	}
	return p
}

func (p *progress) event(e e2e.TestEvent) {
	switch e.Kind {
	case "start":
		p.running = append(p.running, e.Test)
	case "end":
		p.end(e)
	}
	var names []string
	for _, test := range p.running {
		names = append(names, withoutTags(test))
	}
	p.report(p.line(), names)
}

func (p *progress) end(e e2e.TestEvent) {
	if i := slices.Index(p.running, e.Test); i >= 0 {
		p.running = slices.Delete(p.running, i, i+1)
	}
	switch e.State {
	case "passed":
		p.counts.Passed++
	case "skipped", "pending":
		p.counts.Skipped++
	default:
		failure := TestFailure{Name: e.Test, Seconds: e.Seconds, Message: e.Message, At: e.At}
		p.counts.Failed = append(p.counts.Failed, failure)
		p.tell(fmt.Sprintf("%s: %s\n%s\n%s", e.State, e.Test, e.At, strings.TrimSpace(e.Message)))
	}
}

func (p *progress) done() int { return p.counts.Passed + p.counts.Skipped + len(p.counts.Failed) }

// line returns "12 of 417, 12 passed, 0 failed, 9m left".
func (p *progress) line() string {
	text := fmt.Sprintf("%d of %d, %d passed, %d failed", p.done(), p.total, p.counts.Passed, len(p.counts.Failed))
	if left := p.left(); left != "" {
		text += ", " + left + " left"
	}
	return text
}

// left estimates the remaining time from the finished tests, once there are
// enough of them. When only running tests are left, the estimate would be
// wrong, because the slowest tests remain.
func (p *progress) left() string {
	done := p.done()
	if done < 10 || p.total-done <= len(p.running) {
		return ""
	}
	left := p.now().Sub(p.started) / time.Duration(done) * time.Duration(p.total-done)
	if left > 2*time.Minute {
		return fmt.Sprintf("%.0fm", left.Minutes())
	}
	return fmt.Sprintf("%.0fs", left.Seconds())
}

// withoutTags drops the tags in brackets from the name of a test.
func withoutTags(test string) string {
	tag := func(word string) bool { return strings.HasPrefix(word, "[") || strings.HasSuffix(word, "]") }
	return strings.Join(slices.DeleteFunc(strings.Fields(test), tag), " ")
}

func (p *progress) result() Result {
	result := p.counts
	result.Tests = p.counts.Passed + len(p.counts.Failed)
	result.Seconds = p.now().Sub(p.started).Round(time.Millisecond).Seconds()
	return result
}
