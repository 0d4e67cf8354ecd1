package agent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestWhileUnchanged(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	const path, other = "/ca.crt", "/other.crt"
	put := func(path, text string) {
		t.Helper()
		must.NoError(t, files.Write(path, []byte(text), 0o600))
	}
	put(path, "old")
	broken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name   string
			change string
			part   func(context.Context) error
			want   error
		}{
			{"a file that changes", path, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil},
			{"a part that fails", other, func(context.Context) error { return broken }, broken},
		} {
			err := WhileUnchanged(t.Context(), files, func(ctx context.Context) error {
				put(c.change, c.name)
				return c.part(ctx)
			}, path)
			if !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := WhileUnchanged(ctx, files, func(ctx context.Context) error { return ctx.Err() }, path); !errors.Is(err, context.Canceled) {
			t.Errorf("an agent that stops: %v", err)
		}
	})
}
