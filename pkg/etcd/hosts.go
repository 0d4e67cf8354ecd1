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

// networkPrefix is the prefix of flannel's network configuration,
// reservations and leases. Every host may read it.
const networkPrefix = "/coreos.com/network/"

// HostUser returns the etcd role of a host, which is also its user on a
// control plane. A host name contains no colon, so that no host has the user
// of another one.
func HostUser(host string) string { return "flannel:" + host }

// CertificateUser returns the etcd user of one certificate of a worker. A
// worker that was removed and joins again gets another user, so that its old
// certificates are useless.
func CertificateUser(host, certificate string) string { return HostUser(host) + ":" + certificate }

func belongsTo(user, host string) bool {
	return user == HostUser(host) || strings.HasPrefix(user, CertificateUser(host, ""))
}

// hostUser returns a user that may write one key, the host's lease, or none
// if key is empty. A host can therefore change neither the network nor the
// lease of another host.
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

// MissingHost returns the changes that Admit would make.
func MissingHost(ctx context.Context, client *clientv3.Client, host, user, key string) (step.Diff, error) {
	return texts(hostUser(host, user, key).missing(ctx, client))
}

// Admit creates the user of a host. It may write key.
func Admit(ctx context.Context, client *clientv3.Client, host, user, key string) error {
	return apply(hostUser(host, user, key).missing(ctx, client))
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

// Revoke deletes the users and the role of a host, so that its certificates
// are useless.
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
