package step

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestWatchEnds(t *testing.T) {
	end := func(id string, ran time.Duration, restarted bool) End {
		return End{What: "container etcd", ID: id, Code: 3, Ran: ran, Restarted: restarted, LastLine: func(context.Context) string { return "no space" }}
	}
	short := time.Second
	for name, c := range map[string]struct {
		ends []End // one per look; then it runs
		want string
	}{
		"it ends for good":          {[]End{end("1", short, false)}, "container etcd ended with exit code 3 after 1s: no space"},
		"again and again":           {[]End{end("1", short, true), end("2", short, true), end("3", short, true)}, "container etcd ended 3 times, the last time with exit code 3 after 1s: no space"},
		"it never started":          {[]End{{What: "pod x", ID: "1", Code: 128, Failed: "StartError: no such device"}}, "pod x does not start: StartError: no such device"},
		"killed, with an empty log": {[]End{{What: "container x", ID: "1", Code: 137, Ran: short, LastLine: func(context.Context) string { return "" }}}, "container x ended with exit code 137 (killed) after 1s: it has written no log"},
		"twice":                     {[]End{end("1", short, true), end("2", short, true)}, ""},
		"the same end, seen often":  {[]End{end("1", short, true), end("1", short, true), end("1", short, true)}, ""},
		"after it was up for a day": {[]End{end("1", short, true), end("2", short, true), end("3", 24*time.Hour, true)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			looks := 0
			err := WatchEnds(ctx, func(context.Context, time.Time) (End, bool) {
				looks++
				if looks > len(c.ends) {
					stop()
					return End{}, false
				}
				return c.ends[looks-1], true
			})
			if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
