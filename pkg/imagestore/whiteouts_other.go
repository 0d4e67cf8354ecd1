//go:build !linux

package imagestore

import "github.com/containerd/containerd/v2/pkg/archive"

// overlayWhiteouts does nothing: only Linux has overlays.
func overlayWhiteouts() archive.ApplyOpt { return func(*archive.ApplyOptions) error { return nil } }
