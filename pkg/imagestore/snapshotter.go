package imagestore

import (
	"context"
	"path"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// snapshotterDir is the prefix of the directory in which containerd stores the
// data of a snapshotter; the name follows.
const snapshotterDir = "io.containerd.snapshotter.v1."

// podSnapshotter returns the snapshotter of the CRI plugin: pods cannot start
// from images that are unpacked into another one. It returns an empty string,
// which means the default of containerd, if there is no CRI plugin.
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
