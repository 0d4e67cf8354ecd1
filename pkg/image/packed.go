package image

import (
	"bufio"
	"bytes"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// packed is an open file and its decompressor.
type packed struct {
	io.Reader
	file  io.Closer
	close func()
}

func (p packed) Close() error {
	p.close()
	return p.file.Close()
}

// openPacked opens a layer that is compressed by gzip or zstd, or not at all.
func openPacked(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(file, 1<<20)
	begin, _ := r.Peek(4) // a shorter file is not compressed
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
