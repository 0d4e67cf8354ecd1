package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Bytes returns the size of the part that this host needs.
func (o *Offer) Bytes() (n int64) {
	for _, section := range o.Head.PartFor(o.asked.Arch) {
		n += section.Size
	}
	return n
}

// Fetch writes the part of the bundle to path. It resumes an interrupted transfer, also that of an
// earlier run or from another control plane, and fails after several attempts without progress.
func (c Fetcher) Fetch(ctx context.Context, files host.Files, path string) error {
	if err := files.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	for failed := 1; ; failed++ {
		offer, err := c.FirstOffer(ctx)
		if err == nil {
			var more int64
			if more, err = offer.fetch(ctx, files, path); more > 0 {
				failed = 1
			}
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !transient(err) || failed == link.MaxAttempts:
			return err
		}
		if err := link.Wait(ctx, link.Backoff(failed), err.Error()); err != nil {
			return err
		}
	}
}

// partial is the suffix of the file of a transfer that has not ended. Its name contains the
// identity of the bundle. The sections are written in order, so that its size states how much of
// it was received.
const partial = ".partial"

// fetch returns the number of received bytes, also after an error.
func (o *Offer) fetch(ctx context.Context, files host.Files, path string) (more int64, err error) {
	name := path + "." + o.Head.Identity().Encoded()[:12] + partial
	if err := dropOthers(files, path, name); err != nil {
		return 0, err
	}
	file, err := os.OpenFile(files.Path(name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if more, err = o.receive(ctx, file, info.Size()); err != nil {
		return more, err
	}
	if err := errors.Join(file.Sync(), o.verify(ctx, file.Name())); err != nil {
		err = errors.Join(err, files.Remove(name))
		if info.Size() > 0 { // a power failure may have damaged the earlier part
			return more, &link.BrokenError{Err: err}
		}
		return more, err
	}
	return more, os.Rename(file.Name(), files.Path(path))
}

// dropOthers removes the transfers of other bundles.
func dropOthers(files host.Files, path, name string) error {
	return host.Each(files.Match(path+".*"+partial), func(other string) error {
		if other == name {
			return nil
		}
		return files.Remove(other)
	})
}

// receive writes the sections of which the file does not have all.
func (o *Offer) receive(ctx context.Context, file *os.File, have int64) (more int64, err error) {
	part := o.Head.PartFor(o.asked.Arch)
	progress := step.NewCounter(ctx, "fetch images from "+o.server, 0)
	for _, section := range part {
		progress.Expect(section.Size)
	}
	for _, section := range part {
		known := min(max(have-section.Offset, 0), section.Size)
		progress.Add(known)
		if known == section.Size {
			continue
		}
		n, err := o.section(ctx, file, bundle.Section{Offset: section.Offset + known, Size: section.Size - known},
			progress)
		if more += n; err != nil {
			return more, err
		}
	}
	return more, nil
}

func (o *Offer) section(ctx context.Context, file *os.File, part bundle.Section, progress io.Writer) (int64, error) {
	response, err := o.get(ctx, &part)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	to := io.MultiWriter(io.NewOffsetWriter(file, part.Offset), progress)
	n, err := io.Copy(to, io.LimitReader(response.Body, part.Size))
	if _, disk := errors.AsType[*fs.PathError](err); disk {
		return n, err
	}
	if err == nil && n < part.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, &link.BrokenError{Err: err}
	}
	return n, nil
}

// verify compares what was received with the digests in the manifest.
func (o *Offer) verify(ctx context.Context, path string) error {
	b, err := bundle.Open(path, o.asked.Options...)
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Identity() != o.Head.Identity() {
		return fmt.Errorf("%s: its manifest differs from the offered one", path)
	}
	return b.Check(ctx, o.asked.Arch)
}
