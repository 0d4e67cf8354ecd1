package fetch

import (
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

// blob is content with a known digest, and who has it.
type blob struct {
	digest digest.Digest
	size   int64 // 0: not known before it comes
	url    string
	via    http.RoundTripper
}

// path is where a blob lies once it is whole.
func (c *Client) path(d digest.Digest) string {
	return filepath.Join(c.cache, d.Algorithm().String(), d.Encoded())
}

// blob fetches one blob, if the cache does not have it.
func (c *Client) blob(ctx context.Context, b blob, progress *counter) error {
	path := c.path(b.digest)
	if there(path) {
		progress.add(b.size)
		return nil
	}
	release, err := c.lock(ctx, b.digest)
	if err != nil {
		return err
	}
	defer release()
	done, err := c.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if there(path) { // fetched by another one meanwhile
		progress.add(b.size)
		return nil
	}
	return b.fetch(ctx, c.partial(b.digest), path, progress)
}

func (c *Client) partial(d digest.Digest) string {
	return filepath.Join(c.cache, "partial", d.Encoded())
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// lock keeps two from fetching the same blob: the second finds it done.
func (c *Client) lock(ctx context.Context, d digest.Digest) (func(), error) {
	path := c.partial(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return host.WaitLock(ctx, path+".lock", d.Encoded()[:12])
}

// transfer is a blob on its way: what has come lies in a file, so that it goes
// on from there.
type transfer struct {
	blob
	file     *os.File
	sum      hash.Hash
	have     int64
	resumed  bool // part of it came in an earlier try
	progress *counter
}

func (b blob) fetch(ctx context.Context, partial, path string, progress *counter) error {
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	t := &transfer{blob: b, file: file, sum: b.digest.Algorithm().Hash(), progress: progress}
	if err := t.readOld(); err != nil {
		return err
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

func (t *transfer) readOld() (err error) {
	t.have, err = io.Copy(t.sum, t.file)
	if t.have > 0 {
		t.resumed = true
		t.progress.add(t.have)
	}
	return err
}

// anew forgets what has come.
func (t *transfer) anew() error {
	t.progress.add(-t.have)
	t.have, t.resumed = 0, false
	t.sum.Reset()
	_, err := t.file.Seek(0, io.SeekStart)
	return errors.Join(err, t.file.Truncate(0))
}

// run goes on until all is there and right.
func (t *transfer) run(ctx context.Context) error {
	for failed := 0; ; {
		before := t.have
		err := t.more(ctx)
		if err == nil {
			ok, err := t.check()
			if ok || err != nil {
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
		if !link.Passing(err) || failed == link.Tries {
			return err
		}
		if err := link.Rest(ctx, link.Pause(failed), err.Error()); err != nil {
			return err
		}
	}
}

// check compares what has come with the digest. What was put together from
// several tries may be of two files: it gets one more chance.
func (t *transfer) check() (ok bool, err error) {
	if digest.NewDigest(t.digest.Algorithm(), t.sum) == t.digest {
		return true, nil
	}
	again := t.resumed
	if err := t.anew(); err != nil || again {
		return false, err
	}
	return false, errors.Join(&step.Problem{Name: "wrong-checksum", Text: t.url + " is not what its checksum says (" + t.digest.String() + ")",
		Remedy: "try again; if it stays so, somebody changed it on the way or the mirror is damaged: use another"}, os.Remove(t.file.Name()))
}

// more asks for what is missing and takes what comes of it.
func (t *transfer) more(ctx context.Context) error {
	if t.size > 0 && t.have == t.size {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return err
	}
	if t.have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", t.have))
	}
	resp, err := (&http.Client{Transport: t.via}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := t.begin(resp); err != nil {
		return err
	}
	return t.take(resp.Body)
}

var errOtherPart = errors.New("the server sent another part than was asked for")

// begin looks at where the answer starts.
func (t *transfer) begin(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusPartialContent:
		var from int64
		if _, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-", &from); err == nil && from == t.have {
			return nil
		}
		return errors.Join(t.anew(), &link.BrokenError{Err: errOtherPart}) // another part than was asked for
	case http.StatusRequestedRangeNotSatisfiable:
		return errors.Join(t.anew(), &link.BrokenError{Err: errOtherPart}) // we have more than there is
	case http.StatusOK:
		if t.size == 0 && resp.ContentLength > 0 {
			t.size = resp.ContentLength
			t.progress.expect(t.size)
		}
		if t.have > 0 {
			return t.anew() // it cannot begin in the middle
		}
		return nil
	}
	return transport.CheckError(resp, http.StatusOK)
}

func (t *transfer) take(body io.Reader) error {
	if t.size > 0 {
		body = io.LimitReader(body, t.size-t.have+1)
	}
	_, err := io.Copy(io.MultiWriter(t.file, t.sum, t), body)
	var disk *fs.PathError
	switch {
	case errors.As(err, &disk):
		return err
	case err != nil:
		t.resumed = true
		return &link.BrokenError{Err: err}
	case t.size > t.have:
		t.resumed = true
		return &link.BrokenError{Err: io.ErrUnexpectedEOF}
	}
	return nil
}

// Write counts what was kept.
func (t *transfer) Write(p []byte) (int, error) {
	t.have += int64(len(p))
	t.progress.add(int64(len(p)))
	return len(p), nil
}
