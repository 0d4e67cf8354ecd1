package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// networkPrefix holds the description of flannel's network, the subnets that
// are reserved and the leases. Every host reads all of it.
const networkPrefix = "/coreos.com/network/"

// HostUser is the role of a host, and its user of etcd on a control plane. A
// node's name has no colon, so that no host is another user.
func HostUser(host string) string { return "flannel:" + host }

// CertificateUser is the user of a worker for one of its certificates. A worker
// that joins again after it was removed gets another user, so that its earlier
// certificates open nothing.
func CertificateUser(host, certificate string) string { return HostUser(host) + ":" + certificate }

func belongsTo(user, host string) bool {
	return user == HostUser(host) || strings.HasPrefix(user, CertificateUser(host, ""))
}

// hostUser may write one key, that of the host's lease; none if key is empty. So
// a host can change neither the network nor what another host has leased.
func hostUser(host, name, key string) user {
	u := user{name: name, role: HostUser(host), grants: []grant{
		{networkPrefix, clientv3.GetPrefixRangeEnd(networkPrefix), authpb.READ},
		{listPrefix, clientv3.GetPrefixRangeEnd(listPrefix), authpb.READ},
	}}
	if key != "" {
		u.grants = append(u.grants, grant{key, "", authpb.READWRITE})
	}
	return u
}

// MissingHost returns what Admit would do.
func MissingHost(ctx context.Context, client *clientv3.Client, host, user, key string) (step.Diff, error) {
	changes, err := hostUser(host, user, key).missing(ctx, client)
	return texts(changes), err
}

// Admit gives a host a user, which may write key.
func Admit(ctx context.Context, client *clientv3.Client, host, user, key string) error {
	changes, err := hostUser(host, user, key).missing(ctx, client)
	if err != nil {
		return err
	}
	return apply(ctx, changes)
}

// Admitted reports whether a host has a user.
func Admitted(ctx context.Context, client *clientv3.Client, host string) (bool, error) {
	all, err := usersOf(ctx, client, host)
	return len(all) > 0, err
}

func usersOf(ctx context.Context, client *clientv3.Client, host string) ([]string, error) {
	list, err := client.UserList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the users of etcd: %w", err)
	}
	return slices.DeleteFunc(list.Users, func(user string) bool { return !belongsTo(user, host) }), nil
}

// Revoke deletes the users of a host, and with them what its certificates open.
func Revoke(ctx context.Context, client *clientv3.Client, host string) error {
	all, err := usersOf(ctx, client, host)
	if err != nil {
		return err
	}
	for _, user := range all {
		if _, err := client.UserDelete(ctx, user); unless(err, rpctypes.ErrUserNotFound) != nil {
			return fmt.Errorf("delete etcd user %s: %w", user, err)
		}
	}
	_, err = client.RoleDelete(ctx, HostUser(host))
	return unless(err, rpctypes.ErrRoleNotFound)
}
