package etcd

import (
	"context"
	"errors"
	"maps"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Stop ends the etcd of this host. Its data stay.
func (c MemberContainer) Stop(ctx context.Context) error { return c.service().Remove(ctx) }

// Forced runs this member as the only one, on a copy of its data in CopyDir, and calls do once it answers. Nothing
// but this host reaches it. It keeps the ID of the cluster, so the copy must not replace the data: members that
// come back could not tell it from their own cluster (https://github.com/k3s-io/k3s/issues/11992).
func (c MemberContainer) Forced(ctx context.Context, do func(*clientv3.Client) error) error {
	c = c.alone()
	err := c.service().Run(ctx)
	if err == nil {
		err = c.ready(ctx)
	}
	if err == nil {
		err = c.Member.Client.Do(ctx, do)
	}
	return errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
}

// alone returns the container that Forced runs.
func (c MemberContainer) alone() MemberContainer {
	c.suffix, c.RestartPolicy = copySuffix, "no"
	c.Member.Client.IP, c.Member.Peers = "127.0.0.1", nil
	args := config.Arguments{}
	maps.Copy(args, c.ExtraArgs)
	args["force-new-cluster"], args["listen-client-urls"] = "true", c.Member.Client.URL()
	c.ExtraArgs = args
	return c
}
