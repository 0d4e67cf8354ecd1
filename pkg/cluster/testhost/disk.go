package testhost

import (
	"context"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// constantFiles lists the large files that no host changes: the program, and files of image
// layers that were never the upper layer of a container. The kernel makes a directory in the
// work directory of an upper layer at its first mount, and it stays. Small files are not
// listed, because a container sees how many links a file has, and cron, for example, rejects a
// table with two.
const constantFiles = `find host/bin kube-bootstrap/bin -type f -print0
for layer in containerd/*/snapshots/*/fs docker*/overlay2/*/diff; do
	[ -n "$(ls -A "${layer%/*}/work")" ] || find "$layer" -type f -size +1M -print0
done`

// CopyDisk copies the volume of a host that does not run, or is paused, to a volume that
// exists. The copy shares the large files of images with it, so that it needs little time and
// space.
func CopyDisk(ctx context.Context, s *session.Session, image, from, to string) error {
	return s.Cluster().CopyVolume(ctx, docker.VolumeCopy{Image: image, From: from, To: []string{to}, Constant: constantFiles})
}
