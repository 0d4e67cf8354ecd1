package progress

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func sized(width, height int) func() (int, int) {
	return func() (int, int) { return width, height }
}

func TestBars(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(80, 24), false)
	draw(r)
	r.Close()
	for _, want := range []string{"✓   1.2s  start etcd", "✗  1m30s  load <images>"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestStepsUpToDateAreCountedOnceTheyAreTheMajority(t *testing.T) {
	for _, c := range []struct {
		done, upToDate int
		want           string
	}{{34, 21, ""}, {0, 1, "✓         1 step was up to date\n"}, {2, 53, "✓         53 steps were up to date\n"}} {
		var out bytes.Buffer
		r := newBars(&out, sized(80, 24), false)
		for range c.done {
			r.Event(step.Event{At: at(0), Step: "start etcd", Kind: step.Done})
		}
		for range c.upToDate {
			r.Event(step.Event{At: at(0), Step: "look", Kind: step.UpToDate})
		}
		r.Close()
		if got := out.String(); strings.Contains(got, "up to date") != (c.want != "") ||
			!strings.Contains(got, strings.TrimSpace(c.want)) {
			t.Errorf("%d done, %d up to date: got\n%s", c.done, c.upToDate, got)
		}
	}
}

func TestVerboseBarsNameTheStepsUpToDate(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(80, 24), true)
	r.Event(step.Event{At: at(0), Step: "start etcd", Kind: step.UpToDate})
	r.Close()
	if want := "✓         start etcd: up to date"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

// TestPartsOfAHost runs a step of a cluster whose parts run on one host.
func TestPartsOfAHost(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var out bytes.Buffer
		r := newBars(&out, sized(80, 24), verbose)
		for _, name := range []string{"run worker on one", "one: start etcd", "one: load"} {
			r.Event(step.Event{At: at(0), Step: name, Kind: step.Started})
		}
		r.Event(step.Event{At: at(1), Step: "one: start etcd", Kind: step.Done})
		r.Event(step.Event{At: at(2), Step: "one: load", Kind: step.Failed})
		r.Event(step.Event{At: at(3), Step: "run worker on one", Kind: step.Done})
		if len(r.running) > 0 {
			t.Errorf("still running: %v", r.running)
		}
		r.Close()
		for want, printed := range map[string]bool{
			"✓   1.0s  one: start etcd": verbose, "✗   2.0s  one: load": true, "✓   3.0s  run worker on one": true,
		} {
			if strings.Contains(out.String(), want) != printed {
				t.Errorf("verbose %t: %q printed: %t", verbose, want, !printed)
			}
		}
	}
}

// TestTheLineOfAHostShowsItsStage draws the runs on two hosts.
func TestTheLineOfAHostShowsItsStage(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(80, 24), false)
	defer r.Close()
	for _, e := range []step.Event{
		{Step: "run worker on one"}, {Step: "one: preflight", Stage: -1}, {Step: "run worker on two"},
		{Step: "two: start etcd", Stage: 4, Stages: 21}, {Step: "two: start the agent", Stage: 4, Stages: 21},
		{Step: "three: alone", Stages: 2},
	} {
		e.At, e.Kind = at(0), step.Started
		r.Event(e)
	}
	r.Event(step.Event{At: at(1), Step: "two: start etcd", Kind: step.Progress, Message: "no leader yet"})
	want := []string{
		"⠋   2.0s  run worker on one                  preflight",
		"⠋   2.0s  run worker on two                  5 of 21: start etcd: no leader yet",
		"⠋   2.0s  three: alone",
	}
	if got := r.lines(at(2)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestALineShowsWhatFits(t *testing.T) {
	moved := transfer{bytes: 1200e6, total: 1300e6, rate: 1e6}
	name := "kube-worker-1: load the images of the main Docker"
	for _, c := range []struct {
		width   int
		name    string
		moved   transfer
		message string
		want    string
	}{
		{120, "load images", moved, "hyperkube",
			"⠋    12s  load images                                          1200 of 1300 MB, 1.0 MB/s, 1m40s left " +
				"hyperkube"},
		{120, name, transfer{}, "none of 2 pods is ready", "⠋    12s  " + name + "    none of 2 pods is ready"},
		{80, name, moved, "hyperkube",
			"⠋    12s  kube-worker-1: load the images… 1200 of 1300 MB, 1.0 MB/s, 1m40s left"},
		{80, "load images", moved, "hyperkube",
			"⠋    12s  load images                     1200 of 1300 MB, 1.0 MB/s, 1m40s left"},
		{80, name, transfer{}, "none of 2 pods is ready",
			"⠋    12s  kube-worker-1: load the images of the main D… none of 2 pods is ready"},
		{40, name, moved, "hyperkube", "⠋    12s  kube-worker-… 1200 of 1300 MB"},
		{30, name, moved, "hyperkube", "⠋    12s  kube-worker-1:… 92%"},
		{80, "日本語の名前は二倍の幅がある", transfer{bytes: 2e6}, "", "⠋    12s  日本語の名前は二倍の幅がある       2 MB"},
	} {
		if got := line(c.width, head("⠋", "12s"), c.name, c.moved, c.message); got != c.want {
			t.Errorf("%d columns:\n%s, want\n%s", c.width, got, c.want)
		}
	}
}

func TestLinesFitIntoEveryTerminal(t *testing.T) {
	for width := 12; width < 220; width++ {
		for _, name := range []string{"etcd", "日本語の名前は二倍の幅がある", strings.Repeat("long name ", 20)} {
			for _, moved := range []transfer{
				{}, {bytes: 5}, {bytes: 12e6, total: 130e6}, {bytes: 12e6, total: 130e6, rate: 3e6},
			} {
				for _, message := range []string{"", "short", strings.Repeat("日本 ", 90)} {
					got := line(width, head("⠋", "1m35s"), name, moved, message)
					if cells := runewidth.StringWidth(got); cells >= width {
						t.Fatalf("%d cells in %d columns: %q", cells, width, got)
					}
				}
			}
		}
	}
}

// TestWhatAStepDoesAtTheSameTime draws a line for each, as far as there is room.
func TestWhatAStepDoesAtTheSameTime(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(80, 5), false)
	defer r.Close()
	r.Event(step.Event{At: at(0), Step: "run the tests", Kind: step.Started})
	r.Event(step.Event{At: at(1), Step: "run the tests", Kind: step.Progress,
		Message: "312 of 417, 310 passed, 2 failed, 11m left",
		Doing:   []string{"DNS should provide DNS", "Secrets should be consumable", "not drawn"}})
	want := "⠋   1.2s  run the tests              312 of 417, 310 passed, 2 failed, 11m left\n" +
		"            DNS should provide DNS\n            Secrets should be consumable"
	if got := strings.Join(r.lines(at(1.2)), "\n"); got[strings.Index(got, " "):] != want[strings.Index(want, " "):] {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestARunOfTestsOnATerminal draws a run as `cluster e2e` reports it, with the
// longest numbers, at 80 columns.
func TestARunOfTestsOnATerminal(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(80, 24), false)
	defer r.Close()
	const name = "run the tests"
	r.Event(step.Event{At: at(0), Step: name, Kind: step.Started})
	r.Event(step.Event{At: at(1), Step: name, Kind: step.Progress,
		Message: "312 of 433, 300 passed, 12 failed, 111m left",
		Doing: []string{"DNS should provide DNS",
			"StatefulSet Basic StatefulSet functionality should perform canary updates and phased rolling updates of " +
				"template modifications"}})
	want := "⠋   1m3s  run the tests            312 of 433, 300 passed, 12 failed, 111m left\n" +
		"            DNS should provide DNS\n" +
		"            StatefulSet Basic Stat…ed rolling updates of template modifications"
	got := strings.Join(r.lines(at(63)), "\n")
	if _, tail, _ := strings.Cut(got, "1m3s"); tail != strings.SplitN(want, "1m3s", 2)[1] {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	out.Reset()
	r.Event(step.Event{
		At: at(64), Step: name, Kind: step.Note, Message: "failed: [sig-cli] Kubectl diff\nkubectl.go:960",
	})
	if text := out.String(); !strings.Contains(text,
		"failed: [sig-cli] Kubectl diff\x1b[K\n    kubectl.go:960\x1b[K\n") ||
		strings.Index(text, "failed") > strings.Index(text, name) {
		t.Errorf("the failure is not above the moving lines:\n%q", text)
	}
}

func TestNamesAreCutInTheMiddle(t *testing.T) {
	for width := range 60 {
		for _, text := range []string{"short", strings.Repeat("word ", 30), strings.Repeat("日本", 30)} {
			if got := cutMiddle(text, width); runewidth.StringWidth(got) > width {
				t.Errorf("%d columns: %q", width, got)
			}
		}
	}
	if got, want := cutMiddle("0123456789abcdefghij", 10), "012…efghij"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMoreStepsThanRows(t *testing.T) {
	var out bytes.Buffer
	r := newBars(&out, sized(40, 10), false)
	defer r.Close()
	for i := range 20 {
		name := fmt.Sprintf("step %d", i)
		r.Event(step.Event{At: at(0), Step: name, Kind: step.Started})
		r.Event(step.Event{At: at(1), Step: name, Kind: step.Progress, Bytes: 1e6, Total: 5e6})
	}
	got := r.lines(at(2))
	if len(got) != 9 || !strings.HasSuffix(got[7], "… and 13 more") || !strings.Contains(got[8], "total") {
		t.Errorf("%d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// A terminal that became narrower wraps the lines drawn before.
func TestScreenErasesWhatWasWrapped(t *testing.T) {
	var out bytes.Buffer
	width := 80
	s := screen{out: &out, size: func() (int, int) { return width, 24 }}
	s.draw(nil, []string{strings.Repeat("x", 70), "short"})
	width = 40
	out.Reset()
	s.draw([]string{"still"}, []string{"moving"})
	if want := "\x1b[3A\rstill\x1b[K\nmoving\x1b[K\n\x1b[J"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	s.draw(nil, nil)
	s.draw(nil, nil)
	if want := "\x1b[1A\r\x1b[J"; out.String() != want {
		t.Errorf("the end is %q, want %q", out.String(), want)
	}
}

func TestTransfer(t *testing.T) {
	var all transfers
	moved := func(name string, seconds float64, bytes, total int64) transfer {
		return all.Event(step.Event{At: at(seconds), Step: name, Kind: step.Progress, Bytes: bytes, Total: total})
	}
	if got := moved("etcd", 0, 50e6, 100e6).String(); got != "50 of 100 MB" {
		t.Errorf("what was there before gives %q", got)
	}
	if got := moved("etcd", 1, 55e6, 100e6).String(); got != "55 of 100 MB, 5.0 MB/s, 9s left" {
		t.Errorf("after a second: %q", got)
	}
	if got := moved("etcd", 2, 0, 0).String(); got != "55 of 100 MB, 5.0 MB/s, 9s left" {
		t.Errorf("a message without numbers gives %q", got)
	}
	if _, several := all.sum(); several {
		t.Error("one is several")
	}
	moved("pause", 1, 0, 1e6)
	moved("pause", 2, 500e3, 1e6)
	if sum, _ := all.sum(); sum.String() != "55 of 101 MB, 5.5 MB/s, 8s left" {
		t.Errorf("total: %q", sum)
	}
	all.Event(step.Event{At: at(3), Step: "etcd", Kind: step.Done})
	if sum, _ := all.sum(); sum.String() != "100 of 101 MB, 500 kB/s, 1s left" {
		t.Errorf("total, once one is done: %q", sum)
	}
	all.Event(step.Event{At: at(4), Stage: 1, Step: "bundle", Kind: step.Started})
	if sum, several := all.sum(); several {
		t.Errorf("the next stage still has %q", sum)
	}
}

func TestRemaining(t *testing.T) {
	for left, want := range map[time.Duration]string{
		9400 * time.Millisecond: "9s left", 100 * time.Second: "1m40s left",
		80*time.Minute + 20*time.Second: "1h20m left",
		142*time.Hour + 36*time.Minute:  "more than a day left",
	} {
		if got := remaining(left); got != want {
			t.Errorf("%s: %q", left, got)
		}
	}
}
