package offline

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// usedImage is an image that we loaded and that containers of the user now use.
type usedImage struct {
	ref   string
	users []string
	store image.Store
}

func (u usedImage) String() string {
	containers := "container"
	if len(u.users) > 1 {
		containers += "s"
	}
	return fmt.Sprintf("image %s in %s: used by %s %s", u.ref, place(u.store), containers, strings.Join(u.users, ", "))
}

// sort separates images that can be removed from images in use. Images in use
// stay, because a container cannot be created again without its image.
func (l loading) sort(ctx context.Context, refs []string) (free []string, used []usedImage, err error) {
	for _, ref := range refs {
		users, err := l.into.Users(ctx, ref)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("look who uses image %s: %w", ref, err)
		case len(users) > 0:
			used = append(used, usedImage{ref, users, l.into.Kind()})
		default:
			free = append(free, ref)
		}
	}
	return free, used, nil
}
