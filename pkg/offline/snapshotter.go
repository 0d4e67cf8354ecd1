package offline

import (
	"context"
	"path"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// snapshotterDir is what containerd calls the directory of a snapshotter, but
// for its name.
const snapshotterDir = "io.containerd.snapshotter.v1."

// podSnapshotter is the one that pods are started from. What is unpacked into
// another would not be found there. It is empty, which is containerd's default,
// where containerd serves no pods.
func podSnapshotter(ctx context.Context, c *containerd.Client) string {
	conn, ok := c.Conn().(grpc.ClientConnInterface)
	if !ok {
		return ""
	}
	answer, err := runtime.NewImageServiceClient(conn).ImageFsInfo(ctx, &runtime.ImageFsInfoRequest{})
	if err != nil {
		return ""
	}
	for _, fs := range answer.GetImageFilesystems() {
		if name, ok := strings.CutPrefix(path.Base(fs.GetFsId().GetMountpoint()), snapshotterDir); ok {
			return name
		}
	}
	return ""
}
