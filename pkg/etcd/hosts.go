package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// networkPrefix holds the description of flannel's network, the subnets that
// are reserved and the leases. Every host reads all of it.
const networkPrefix = "/coreos.com/network/"

// HostUser is the user of etcd that a host has: the common name of flannel's
// certificate on it. A node's name has no colon, so that no host is another user.
func HostUser(host string) string { return "flannel:" + host }

// hostUser may write one key, that of the host's lease; none if key is empty. So
// a host can change neither the network nor what another host has leased.
func hostUser(host, key string) user {
	u := user{name: HostUser(host), grants: []grant{
		{networkPrefix, clientv3.GetPrefixRangeEnd(networkPrefix), authpb.READ},
		{listPrefix, clientv3.GetPrefixRangeEnd(listPrefix), authpb.READ},
	}}
	if key != "" {
		u.grants = append(u.grants, grant{key, "", authpb.READWRITE})
	}
	return u
}

// MissingHost returns what Admit would do.
func MissingHost(ctx context.Context, client *clientv3.Client, host, key string) (step.Diff, error) {
	changes, err := hostUser(host, key).missing(ctx, client)
	return texts(changes), err
}

// Admit gives a host its user, which may write key.
func Admit(ctx context.Context, client *clientv3.Client, host, key string) error {
	changes, err := hostUser(host, key).missing(ctx, client)
	if err != nil {
		return err
	}
	return apply(ctx, changes)
}

// Admitted reports whether a host has a user.
func Admitted(ctx context.Context, client *clientv3.Client, host string) (bool, error) {
	_, err := client.UserGet(ctx, HostUser(host))
	return err == nil, unless(err, rpctypes.ErrUserNotFound)
}

// Revoke deletes the user of a host, and with it what its certificate opens.
func Revoke(ctx context.Context, client *clientv3.Client, host string) error {
	_, err := client.UserDelete(ctx, HostUser(host))
	_, roleErr := client.RoleDelete(ctx, HostUser(host))
	return errors.Join(unless(err, rpctypes.ErrUserNotFound), unless(roleErr, rpctypes.ErrRoleNotFound))
}
