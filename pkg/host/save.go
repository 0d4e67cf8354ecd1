package host

import (
	"context"
	"io"
)

// Save writes images as a `docker save` archive.
func (d *Docker) Save(ctx context.Context, w io.Writer, refs ...string) error {
	archive, err := d.ImageSave(ctx, refs)
	if err != nil {
		return err
	}
	defer archive.Close()
	_, err = io.Copy(w, archive)
	return err
}
