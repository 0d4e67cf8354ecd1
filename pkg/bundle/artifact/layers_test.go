package artifact

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestAnInterruptedCompressionReadsNoMore: the frames of the bundle are closed
// afterwards.
func TestAnInterruptedCompressionReadsNoMore(t *testing.T) {
	data, err := host.UnnamedFile(t.TempDir())
	must.NoError(t, err)
	defer data.Close()
	l := layerFile{data: data}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var ended atomic.Bool
	err = l.compress(ctx, func(w io.Writer) error {
		time.Sleep(100 * time.Millisecond)
		_, err := w.Write([]byte("a layer"))
		ended.Store(true)
		return err
	}, 7)
	if !errors.Is(err, context.Canceled) || !ended.Load() {
		t.Errorf("%v, and the layer is still read: %t", err, !ended.Load())
	}
}
