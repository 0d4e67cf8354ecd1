package testhost

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PreparedDisk is the copy of the disk of a host that has the images but no role. It belongs to no
// cluster. New hosts of all clusters start with a copy of it and need not load the images.
type PreparedDisk struct {
	Key    string // identifies the content; "": unknown, so no disk is made or used
	Volume string // "": the engine has no such disk
}

// FindPreparedDisk returns the prepared disk with a key.
func FindPreparedDisk(ctx context.Context, c containers.Cluster, key string) (p PreparedDisk, err error) {
	if p.Key = key; key != "" {
		p.Volume, err = c.Disks.Find(ctx, key)
	}
	return p, err
}

// sparePrepared is the free space in bytes that a prepared disk requires. The disk takes
// about 1 GB once the cluster that shares its files is removed.
const sparePrepared = 5 << 30

// begin returns the empty volume of a new prepared disk; "" if none is to be made.
func (p PreparedDisk) begin(ctx context.Context, c containers.Cluster, free int64) (string, error) {
	if p.Key == "" || free < sparePrepared {
		return "", nil
	}
	return c.Disks.Begin(ctx)
}

// TakeBack removes the disk that a failed run has made, if it had to make one.
func (p PreparedDisk) TakeBack(ctx context.Context, c containers.Cluster) error {
	if p.Key == "" || p.Volume != "" {
		return nil
	}
	return c.Disks.RemoveOfCluster(ctx, p.Key)
}

// CopyTo returns the step that copies the disk to new hosts.
func (p PreparedDisk) CopyTo(hosts []Machine) step.Step {
	return step.Always("copy-prepared-disk", fmt.Sprintf("copy the prepared disk to %d hosts", len(hosts)),
		func(ctx context.Context) error {
			targets, err := volumesOf(ctx, hosts)
			if err != nil {
				return err
			}
			return CopyDisk(ctx, hosts[0].cluster, hosts[0].Image(), p.Volume, targets...)
		}).If(p.Volume != "" && len(hosts) > 0)
}

// Image returns the name of the image of the host.
func (m Machine) Image() string { return m.config.Image }
