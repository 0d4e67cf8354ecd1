package host

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"
)

// ImagesNamed lists the references that match a pattern: "registry/name:*".
func (d *Docker) ImagesNamed(ctx context.Context, pattern string) ([]string, error) {
	list, err := d.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", pattern)})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var refs []string
	for _, image := range list.Items {
		refs = append(refs, image.RepoTags...)
	}
	return refs, nil
}
