package image

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packed is an open file and what unpacks it.
type packed struct {
	io.Reader
	file  io.Closer
	close func()
}

func (p packed) Close() error {
	p.close()
	return p.file.Close()
}

// openPacked opens a layer as registries have them: with gzip, with zstd, or
// plain.
func openPacked(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(file, 1<<20)
	begin, _ := r.Peek(4) // shorter: it is neither
	switch {
	case bytes.HasPrefix(begin, []byte{0x1f, 0x8b}):
		plain, err := gzip.NewReader(r)
		if err != nil {
			file.Close()
			return nil, err
		}
		return packed{plain, file, func() { plain.Close() }}, nil
	case bytes.HasPrefix(begin, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		plain, err := zstd.NewReader(r)
		if err != nil {
			file.Close()
			return nil, err
		}
		return packed{plain, file, plain.Close}, nil
	}
	return packed{r, file, func() {}}, nil
}
