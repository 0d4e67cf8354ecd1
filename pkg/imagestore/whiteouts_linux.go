package imagestore

import "github.com/containerd/containerd/v2/pkg/archive"

func overlayWhiteouts() archive.ApplyOpt {
	return archive.WithConvertWhiteout(archive.OverlayConvertWhiteout)
}
