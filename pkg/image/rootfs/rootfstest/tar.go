// Package rootfstest makes layers for tests.
package rootfstest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Tar returns an archive with members in the given order: "name=content" is a
// file, "name->target" a symbolic link, and "name/" a directory.
func Tar(t testing.TB, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		name, data, _ := strings.Cut(m, "=")
		must.NoError(t, w.WriteHeader(header(name, len(data))))
		_, err := io.WriteString(w, data)
		must.NoError(t, err)
	}
	must.NoError(t, w.Close())
	return out.Bytes()
}

func header(name string, size int) *tar.Header {
	h := &tar.Header{
		Name: name, Typeflag: tar.TypeReg, Size: int64(size), Mode: 0o755, ModTime: time.Unix(0, 0),
		Format: tar.FormatUSTAR,
	}
	if link, target, ok := strings.Cut(name, "->"); ok {
		h.Name, h.Typeflag, h.Linkname, h.Mode = link, tar.TypeSymlink, target, 0o777
	} else if strings.HasSuffix(name, "/") {
		h.Typeflag = tar.TypeDir
	}
	return h
}

// Gzip compresses data.
func Gzip(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	must.NoError(t, errors.Join(err, w.Close()))
	return out.Bytes()
}
