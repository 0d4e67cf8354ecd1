package step

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// slow returns a step whose server answers after a delay. Its Check wrongly
// returns a Diff when its request fails, which the Runner must not believe.
func slow(late time.Duration) (s Step, applied *bool) {
	applied = new(bool)
	answer := func(ctx context.Context) error {
		select {
		case <-time.After(late):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return Step{
		ID: "add-users", Name: "add users",
		Check: func(ctx context.Context) (Diff, error) {
			if answer(ctx) != nil || !*applied {
				return Diff{"add user root"}, nil
			}
			return nil, nil
		},
		Apply: func(ctx context.Context) error {
			ctx, cancel := Limited(ctx)
			defer cancel()
			*applied = true
			return answer(ctx)
		},
	}, applied
}

func TestACheckWithoutAnAnswerFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := slow(time.Minute)
		f := (&Runner{}).Check(t.Context(), Plan{{s}})[0]
		if !IsUnanswered(f.Err) || len(f.Diff) > 0 || !strings.Contains(f.Err.Error(), "no answer within 10s") {
			t.Errorf("found %v, %v", f.Diff, f.Err)
		}
	})
}

// TestTheLimitIsForEveryRequest: a longer limit helps on a slow host. It
// applies to each request, and to the Check after Apply.
func TestTheLimitIsForEveryRequest(t *testing.T) {
	for limit, enough := range map[time.Duration]bool{20 * time.Minute: true, 5 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			s, applied := slow(35 * time.Second)
			err := (&Runner{}).Do(t.Context(), Plan{{s}}.Within(limit))
			if !*applied || enough != (err == nil) {
				t.Errorf("limit %s: applied %t, %v", limit, *applied, err)
			}
		})
	}
}

func TestAStepThatOnlyLooksHasTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, applied := slow(time.Minute)
		s.Apply, *applied = nil, true
		if err := (&Runner{}).Do(t.Context(), Plan{{s}}); err != nil {
			t.Error(err)
		}
	})
}

// TestAWaitTriesAgainWithMoreTime: a try without an answer must not prevent the
// next one.
func TestAWaitTriesAgainWithMoreTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := Until(t.Context(), func(ctx context.Context) error {
			select {
			case <-time.After(15 * time.Second):
				return nil
			case <-ctx.Done():
				tries++
				return ctx.Err()
			}
		}, nil)
		if err != nil || tries != 3 {
			t.Errorf("%d tries, %v", tries, err)
		}
	})
}

// TestAnInterruptedCheckFindsNothing: it may take its own end for a missing answer.
func TestAnInterruptedCheckFindsNothing(t *testing.T) {
	for name, apply := range map[string]func(context.Context) error{"only looks": nil, "applies": func(context.Context) error { return nil }} {
		ctx, interrupt := context.WithCancel(t.Context())
		s := Step{ID: "check-docker", Name: "check Docker", Apply: apply, Check: func(ctx context.Context) (Diff, error) {
			interrupt()
			<-ctx.Done()
			return Diff{"start Docker"}, &Problem{Name: "docker-stopped", Text: "Docker does not answer"}
		}}
		var events []EventKind
		err := (&Runner{Emit: func(e Event) { events = append(events, e.Kind) }}).Do(ctx, Plan{{s}})
		if !errors.Is(err, context.Canceled) || len(Problems(err)) > 0 || len(events) > 0 {
			t.Errorf("%s: %v, events %v", name, err, events)
		}
	}
}

// TestAWrappedFinalErrorIsFinal: each layer of a probe adds to its error.
func TestAWrappedFinalErrorIsFinal(t *testing.T) {
	tries := 0
	err := Until(t.Context(), func(context.Context) error {
		tries++
		return Wrap(Final(errors.New("no such user")), "create user root")
	}, nil)
	if tries != 1 || err == nil || err.Error() != "create user root: no such user" {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// A command that is killed at the end of a try fails for that reason alone.
func TestAFinalErrorOfALateTryIsRetried(t *testing.T) {
	tries := 0
	err := Until(WithLimit(t.Context(), 10*time.Second), func(ctx context.Context) error {
		if tries++; tries > 1 {
			return nil
		}
		<-ctx.Done()
		return Final(ctx.Err())
	}, nil)
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
}

// TestTheEndOfAWaitHidesNoAnswer: a program that is killed at the end of a wait
// fails for that reason, whatever its error says.
func TestTheEndOfAWaitHidesNoAnswer(t *testing.T) {
	for _, killed := range []error{errors.New("signal: killed"), Final(errors.New("signal: killed"))} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			err := Until(WithLimit(t.Context(), time.Second), func(ctx context.Context) error {
				if tries++; tries < 3 {
					return errors.New("not signed")
				}
				<-ctx.Done()
				return killed
			}, nil)
			if err == nil || err.Error() != "not within 1s: not signed" {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFinalErrorEndsAWait(t *testing.T) {
	refused := errors.New("permission denied")
	if err := Until(t.Context(), func(context.Context) error { return Final(refused) }, nil); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestWatchingEndsWhatWaitsInVain(t *testing.T) {
	never := func(context.Context) error { return errors.New("connection refused") }
	ended := errors.New("kubelet ended: unknown flag")
	s := Wait("wait-for-apiserver", "wait for the API server", never, nil).Watched(func(context.Context) error { return ended })
	if err := (&Runner{}).Do(t.Context(), Plan{{s}}); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	lives := func(ctx context.Context) error { <-ctx.Done(); return nil }
	if err := Watching(t.Context(), lives, func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Watching(t.Context(), lives, func(context.Context) error { return ended }); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
}

func TestDiffOf(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		missing bool
		unknown bool
	}{
		"reached":           {nil, false, false},
		"seen":              {errors.New("not labelled"), true, false},
		"nobody listens":    {Serves(syscall.ECONNREFUSED), true, false},
		"no socket":         {Serves(fs.ErrNotExist), true, false},
		"no answer":         {Serves(context.DeadlineExceeded), false, true},
		"refused, no goal":  {NoAnswer(syscall.ECONNREFUSED), false, true},
		"never set up here": {NoAnswer(fs.ErrNotExist), true, false},
	} {
		diff, err := DiffOf(c.err, "do it")
		if (len(diff) > 0) != c.missing || IsUnanswered(err) != c.unknown {
			t.Errorf("%s: got %v, %v", name, diff, err)
		}
	}
}

func TestWrapKeepsNilAndTheCause(t *testing.T) {
	if err := Wrap(nil, "make volume %s", "data"); err != nil {
		t.Errorf("no error became %v", err)
	}
	err := Wrap(fs.ErrNotExist, "make volume %s", "data")
	if !errors.Is(err, fs.ErrNotExist) || err.Error() != "make volume data: file does not exist" {
		t.Errorf("the error is %v", err)
	}
}
