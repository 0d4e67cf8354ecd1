package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// hashed passes etcd's snapshot on and checks the hash at its end.
type hashed struct {
	to   io.Writer
	sum  hash.Hash
	tail []byte // the last bytes so far, which may be the hash
	size int64
}

func newHashed(to io.Writer) *hashed { return &hashed{to: to, sum: sha256.New()} }

func (h *hashed) Write(data []byte) (int, error) {
	h.size += int64(len(data))
	h.tail = append(h.tail, data...)
	if n := len(h.tail) - sha256.Size; n > 0 {
		h.sum.Write(h.tail[:n])
		h.tail = append(h.tail[:0], h.tail[n:]...)
	}
	return h.to.Write(data)
}

// pageMultiple divides the size of each database of etcd. etcd recognizes by it whether a hash follows.
// https://github.com/etcd-io/etcd/blob/v3.7.3/etcdutl/snapshot/v3_snapshot.go#L97-L104
const pageMultiple = 512

func (h *hashed) check() error {
	if h.size%pageMultiple != sha256.Size || h.size <= sha256.Size || !bytes.Equal(h.sum.Sum(nil), h.tail) {
		return errors.New("the snapshot of etcd does not have the hash that etcd has given to it")
	}
	return nil
}
