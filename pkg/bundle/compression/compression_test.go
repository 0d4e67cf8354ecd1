package compression

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestEncodedDataIsDecodedAndAlwaysTheSame(t *testing.T) {
	for _, size := range []int{0, 1, 4 << 10, 3 << 20} {
		data := []byte(strings.Repeat("kubelet ", size/8+1)[:size])
		for _, method := range []Method{Fast, best} {
			var one, two bytes.Buffer
			for _, to := range []*bytes.Buffer{&one, &two} {
				must.NoError(t, method.Compress(t.Context(), to, bytes.NewReader(data), int64(size)))
			}
			if !bytes.Equal(one.Bytes(), two.Bytes()) {
				t.Errorf("%s, %d bytes: the second result differs", method.Name, size)
			}
			decoder, err := NewDecoder(&one, 1)
			must.NoError(t, err)
			got, err := io.ReadAll(decoder)
			decoder.Close()
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s, %d bytes: got %d bytes, %v", method.Name, size, len(got), err)
			}
		}
	}
}
