package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// evil changes the title of a terminal, the clipboard and the lines above.
const evil = "v1.37.2\x1b]0;title\x07\x1b]52;c;cm0gLXJmIC8=\x07\x1b[99A\x1b[2K\u009b2J\x9b2J\u202egnp.exe\r\x7f"

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"größer, 日本語: ✓ ⠋\n\tend ": "größer, 日本語: ✓ ⠋\n\tend ",
		"\x1b[2J":                  `\x1b[2J`,
		"a\u009b\x9b\r\x00":        `a\u009b\x9b\x0d\x00`,
		"\u202egnp.exe":            `\u202egnp.exe`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestNoTextControlsTheTerminal: the texts of events and errors come from nodes too.
func TestNoTextControlsTheTerminal(t *testing.T) {
	for _, mode := range []string{"plain", "bars"} {
		var out bytes.Buffer
		r := New(mode, true, &out)
		for _, kind := range []step.EventKind{step.Started, step.Progress, step.Note, step.Done, step.UpToDate} {
			r.Event(step.Event{At: time.Now(), Step: evil, Kind: kind, Message: evil, Doing: []string{evil}})
		}
		r.Close()
		for _, part := range []string{"\x1b]", "\x07", "\u009b", "\x9b2J", "\u202e", "\x1b[99A", "\x1b[2K", "\x7f"} {
			if strings.Contains(out.String(), part) {
				t.Errorf("%s prints %q in\n%q", mode, part, out.String())
			}
		}
		if !strings.Contains(out.String(), `v1.37.2\x1b]0;title`) {
			t.Errorf("%s prints\n%q", mode, out.String())
		}
	}
}
