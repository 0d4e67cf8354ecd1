package host

import (
	"context"
	"fmt"
	"io"
)

// Save streams images as a `docker save` archive.
func (d *Docker) Save(ctx context.Context, refs ...string) (io.ReadCloser, error) {
	archive, err := d.ImageSave(ctx, refs)
	if err != nil {
		return nil, fmt.Errorf("save images: %w", err)
	}
	return archive, nil
}
