package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// busyFor returns a context of a host that is busy for a part of the time.
func busyFor(ctx context.Context, part float64) context.Context {
	begun := time.Now()
	return WithBusy(ctx, func() time.Duration { return time.Duration(part * float64(time.Since(begun))) })
}

// TestABusyHostHasLonger: a wait ends on a host that is always busy too.
func TestABusyHostHasLonger(t *testing.T) {
	for part, want := range map[float64]time.Duration{0: time.Minute, 0.5: 2 * time.Minute, 0.9: 10 * time.Minute, 3: 10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ctx, cancel := Limited(WithLimit(busyFor(t.Context(), part), time.Minute))
			defer cancel()
			child, stop := context.WithCancel(ctx)
			defer stop()
			<-child.Done()
			if took := time.Since(begun).Round(time.Second); took != want {
				t.Errorf("busy for %g of the time: %s, want %s", part, took, want)
			}
			if !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(child), context.DeadlineExceeded) {
				t.Errorf("ended by %v, %v", child.Err(), context.Cause(child))
			}
		})
	}
}

// TestAWaitForAnotherMachineHasItsLimit: a mistyped address is reported as soon on a busy host.
func TestAWaitForAnotherMachineHasItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx := WithLimit(WithoutBusy(busyFor(t.Context(), 0.9)), time.Minute)
		err := Until(ctx, func(context.Context) error { return errors.New("no route to host") }, nil)
		if took := time.Since(begun); err == nil || took > time.Minute {
			t.Errorf("%v after %s", err, took)
		}
	})
}

func TestALimitedContextEndsWithItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		because := errors.New("another step has failed")
		parent, stop := context.WithCancelCause(busyFor(t.Context(), 0.9))
		ctx, cancel := Limited(parent)
		defer cancel()
		stop(because)
		if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), because) {
			t.Errorf("ended by %v, %v", ctx.Err(), context.Cause(ctx))
		}
		<-ctx.Done()
	})
}

func TestHalfOfTheTimeThatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := Checking(busyFor(t.Context(), 0.5))
		defer cancel()
		half, done := Half(ctx)
		defer done()
		<-half.Done()
		<-ctx.Done()
		if took := time.Since(begun).Round(time.Second); took != 20*time.Second {
			t.Errorf("%s", took)
		}
	})
}

func TestAWaitSaysThatTheHostWasBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := WithLimit(busyFor(t.Context(), 0.5), time.Minute)
		err := Until(ctx, func(context.Context) error { return errors.New("no leader") }, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "not within 1m0s, and 1m0s more because this host was busy: no leader") {
			t.Error(err)
		}
	})
}
