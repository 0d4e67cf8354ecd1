package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// blob is content with a known digest, and its URL.
type blob struct {
	digest digest.Digest
	size   int64 // 0: unknown until the response arrives
	url    string
	via    http.RoundTripper
}

// path returns the file of a complete blob.
func (c *Downloader) path(d digest.Digest) string {
	return filepath.Join(c.cache, d.Algorithm().String(), d.Encoded())
}

// partial returns the file of a blob while it is downloaded.
func (c *Downloader) partial(d digest.Digest) string {
	return filepath.Join(c.cache, "partial", d.Encoded())
}

// blob downloads one blob, unless it is in the cache.
func (c *Downloader) blob(ctx context.Context, b blob, progress *step.Counter) error {
	path := c.path(b.digest)
	if (host.Files{}).Exists(path) {
		progress.Add(b.size)
		return nil
	}
	partial := c.partial(b.digest)
	if err := os.MkdirAll(filepath.Dir(partial), 0o755); err != nil {
		return err
	}
	// Two processes do not download the same blob.
	release, err := host.WaitLock(ctx, partial+".lock", b.digest.Encoded()[:12])
	if err != nil {
		return err
	}
	defer release()
	if c.turns.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer c.turns.Release(1)
	if (host.Files{}).Exists(path) { // fetched by another process meanwhile
		progress.Add(b.size)
		return nil
	}
	return b.fetch(ctx, partial, path, progress)
}

// transfer is the download of one blob. The received part is in a file, so
// that the download resumes after it.
type transfer struct {
	blob
	file     *os.File
	sum      hash.Hash
	have     int64
	most     int64 // bytes that are accepted if the size is not known before
	resumed  bool  // a part of it is from an earlier attempt
	progress *step.Counter
}

// largestFile is larger than any file that is downloaded, in bytes. An endless one would fill the
// disk before its digest can be compared.
const largestFile = 4 << 30

func (b blob) fetch(ctx context.Context, partial, path string, progress *step.Counter) error {
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	t := &transfer{blob: b, file: file, sum: b.digest.Algorithm().Hash(), most: largestFile, progress: progress}
	if t.have, err = io.Copy(t.sum, file); err != nil {
		return err
	}
	if t.have > 0 {
		t.resumed = true
		progress.Add(t.have)
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func tooLarge(what string, most int64) error {
	return fmt.Errorf("%s has more than the %d bytes that are accepted", what, most)
}

// restart discards the received part.
func (t *transfer) restart() error {
	t.progress.Add(-t.have)
	t.have, t.resumed = 0, false
	t.sum.Reset()
	_, err := t.file.Seek(0, io.SeekStart)
	return errors.Join(err, t.file.Truncate(0))
}

// run continues until the blob is complete and its digest is correct.
func (t *transfer) run(ctx context.Context) error {
	for failed := 0; ; {
		before := t.have
		err := t.more(ctx)
		if err == nil {
			if ok, err := t.check(); ok || err != nil {
				return err
			}
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed++; t.have > before {
			failed = 1
		}
		if !link.IsTransient(err) || failed == link.MaxAttempts {
			return err
		}
		if err := link.Wait(ctx, link.Backoff(failed), err.Error()); err != nil {
			return err
		}
	}
}

// check compares the received content with the digest. If it is from several
// attempts, the server may have changed the file between them: then the
// transfer starts again once.
func (t *transfer) check() (ok bool, err error) {
	if digest.NewDigest(t.digest.Algorithm(), t.sum) == t.digest {
		return true, nil
	}
	again := t.resumed
	if err := t.restart(); err != nil || again {
		return false, err
	}
	return false, errors.Join(&step.Problem{Name: "wrong-checksum", Firm: true,
		Text: t.url + " does not match its checksum (" + t.digest.String() + ")",
		Remedy: "try again; if the problem remains, use another mirror: the file was changed on the network or on " +
			"this mirror"}, os.Remove(t.file.Name()))
}

// more requests the missing part and appends it to the file.
func (t *transfer) more(ctx context.Context) error {
	if t.size > 0 && t.have == t.size {
		return nil
	}
	resp, err := link.GetFrom(ctx, &http.Client{Transport: t.via}, t.url, t.have)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := t.begin(resp); err != nil {
		return err
	}
	return t.take(resp.Body)
}

var errOtherPart = errors.New("the server sent another range than the requested one")

// begin checks where the response begins, and discards the received part if
// the response does not continue it.
func (t *transfer) begin(resp *http.Response) error {
	switch resp.StatusCode {
	// The range is not satisfiable if the file has more bytes than the blob.
	case http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		var from int64
		_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from)
		if resp.StatusCode == http.StatusPartialContent && err == nil && from == t.have {
			return nil
		}
		return errors.Join(t.restart(), &link.BrokenError{Err: errOtherPart})
	case http.StatusOK:
		if t.size == 0 && resp.ContentLength > t.most {
			return tooLarge(t.url, t.most)
		}
		if t.size == 0 && resp.ContentLength > 0 {
			t.size = resp.ContentLength
			t.progress.Expect(t.size)
		}
		if t.have > 0 {
			return t.restart() // the server ignored the Range header
		}
		return nil
	}
	return transport.CheckError(resp, http.StatusOK)
}

func (t *transfer) take(body io.Reader) error {
	_, err := io.Copy(io.MultiWriter(t.file, t.sum, t), io.LimitReader(body, cmp.Or(t.size, t.most)-t.have+1))
	if _, disk := errors.AsType[*fs.PathError](err); disk {
		return err
	}
	if t.size == 0 && t.have > t.most {
		return errors.Join(tooLarge(t.url, t.most), t.restart())
	}
	if err == nil && t.size > t.have {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		t.resumed = true
		return &link.BrokenError{Err: err}
	}
	return nil
}

// Write counts the bytes that were written to the file.
func (t *transfer) Write(p []byte) (int, error) {
	t.have += int64(len(p))
	t.progress.Add(int64(len(p)))
	return len(p), nil
}
