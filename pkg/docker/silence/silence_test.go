package silence

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestASlowSourceIsNotASilentEngine: the limit applies to the engine alone.
func TestASlowSourceIsNotASilentEngine(t *testing.T) {
	const limit = 50 * time.Millisecond
	ctx, watch := Begin(step.WithLimit(t.Context(), limit))
	defer watch.End()
	slow := readerFunc(func(p []byte) (int, error) {
		time.Sleep(3 * limit)
		return len(p), nil
	})
	if _, err := watch.Sent(slow).Read(make([]byte, 1)); err != nil || ctx.Err() != nil {
		t.Errorf("after a slow read: %v, %v", err, context.Cause(ctx))
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "silent") {
		t.Errorf("ended by %v", cause)
	}
}
