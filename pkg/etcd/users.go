package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// user is an etcd user with one role. etcd takes the user name from the
// common name of the client certificate. The role root has all permissions.
type user struct {
	name, role string
	grants     []grant // of the role; none for root
}

// grant is a permission for one key, or for all keys below a prefix.
type grant struct {
	key, end string // an empty end means one key
	kind     authpb.Permission_Type
}

// root is the user of the API server.
var root = user{name: "root", role: "root"}

// EnableAuth is the step that creates etcd's users and enables authentication.
func (c Client) EnableAuth() step.Step {
	all := step.Diff{"add etcd user " + root.name, "enable etcd auth"}
	return c.Step("etcd-users", "give etcd its users", all,
		func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
			return texts(missing(ctx, client))
		}, func(ctx context.Context, client *clientv3.Client) error {
			ctx, cancel := step.Limited(ctx)
			defer cancel()
			return apply(missing(ctx, client))
		})
}

// change is one change of the users and roles of etcd: its description, and the call
// that makes it.
type change struct {
	text string
	call func() error
}

// apply makes the changes that missing returns.
func apply(changes []change, err error) error {
	for _, c := range changes {
		if err := c.call(); err != nil {
			return fmt.Errorf("%s: %w", c.text, err)
		}
	}
	return err
}

// texts describes the changes that missing returns.
func texts(changes []change, err error) (diff step.Diff, _ error) {
	for _, c := range changes {
		diff = append(diff, c.text)
	}
	return diff, err
}

// missing returns the calls that create root and enable authentication: this last, so
// that the next run can complete an interrupted one.
func missing(ctx context.Context, client *clientv3.Client) ([]change, error) {
	all, err := root.missing(ctx, client)
	if err != nil {
		return nil, err
	}
	status, err := client.AuthStatus(ctx)
	if err != nil {
		return nil, err
	}
	if status.Enabled {
		return all, nil
	}
	return append(all, change{"enable etcd auth", func() error {
		_, err := client.AuthEnable(ctx)
		return err
	}}), nil
}

func (u user) missing(ctx context.Context, client *clientv3.Client) ([]change, error) {
	role, err := u.missingRole(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("look at etcd role %s: %w", u.role, err)
	}
	grant := change{"grant etcd role " + u.role + " to user " + u.name, func() error {
		_, err := client.UserGrantRole(ctx, u.name, u.role)
		return err
	}}
	now, err := client.UserGet(ctx, u.name)
	switch {
	case errors.Is(err, rpctypes.ErrUserNotFound):
		return append(role, change{"add etcd user " + u.name, func() error {
			_, err := client.UserAddWithOptions(ctx, u.name, "", &clientv3.UserAddOptions{NoPassword: true})
			return unless(err, rpctypes.ErrUserAlreadyExist)
		}}, grant), nil
	case err != nil:
		return nil, fmt.Errorf("look at etcd user %s: %w", u.name, err)
	case !slices.Contains(now.Roles, u.role):
		return append(role, grant), nil
	}
	return role, nil
}

// missingRole returns the calls that give a role its grants and no others.
func (u user) missingRole(ctx context.Context, client *clientv3.Client) (changes []change, err error) {
	now, err := client.RoleGet(ctx, u.role)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		now, err = &clientv3.AuthRoleGetResponse{}, nil
		changes = append(changes, change{"add etcd role " + u.role, func() error {
			_, err := client.RoleAdd(ctx, u.role)
			return unless(err, rpctypes.ErrRoleAlreadyExist)
		}})
	}
	if err != nil {
		return nil, err
	}
	for _, p := range now.Perm {
		if u.role != root.role && !slices.ContainsFunc(u.grants, func(g grant) bool { return g.is(p) }) {
			changes = append(changes, change{"revoke " + string(p.Key) + " from etcd role " + u.role, func() error {
				_, err := client.RoleRevokePermission(ctx, u.role, string(p.Key), string(p.RangeEnd))
				return err
			}})
		}
	}
	for _, g := range u.grants {
		if slices.ContainsFunc(now.Perm, g.is) {
			continue
		}
		changes = append(changes, change{"grant " + g.key + " to etcd role " + u.role, func() error {
			_, err := client.RoleGrantPermission(ctx, u.role, g.key, g.end, clientv3.PermissionType(g.kind))
			return err
		}})
	}
	return changes, nil
}

func (g grant) is(p *authpb.Permission) bool {
	return p.PermType == g.kind && string(p.Key) == g.key && string(p.RangeEnd) == g.end
}

// unless returns nil if err is done: the change was made meanwhile.
func unless(err, done error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}

// networkPrefix is the prefix of all keys of flannel. Every host may read them.
const networkPrefix = "/coreos.com/network/"

// Readable lists the prefixes of the keys that every host may read.
func Readable() []string { return []string{networkPrefix, listPrefix} }

// HostUser returns the etcd role of a host, which is also its user on a control
// plane. A host name contains no colon, so that no host has the user of another one.
func HostUser(host string) string { return "flannel:" + host }

// CertificateUser returns the etcd user of one certificate of a worker. A worker that
// joins again gets another user, so that its old certificates are useless.
func CertificateUser(host, certificate string) string { return HostUser(host) + ":" + certificate }

// WorkerOf returns the host of a CertificateUser, or "" if user is none: only workers
// have such users.
func WorkerOf(user string) string {
	name, found := strings.CutPrefix(user, HostUser(""))
	host, certificate, ofCertificate := strings.Cut(name, ":")
	if !found || !ofCertificate || host == "" || certificate == "" || strings.Contains(certificate, ":") {
		return ""
	}
	return host
}

func belongsTo(user, host string) bool {
	return user == HostUser(host) || strings.HasPrefix(user, CertificateUser(host, ""))
}

// hostUser returns a user that may only write key, the host's lease, or nothing if key
// is empty: not the network, nor the lease of another host.
func hostUser(host, name, key string) user {
	u := user{name: name, role: HostUser(host)}
	for _, prefix := range Readable() {
		u.grants = append(u.grants, grant{prefix, clientv3.GetPrefixRangeEnd(prefix), authpb.READ})
	}
	if key != "" {
		u.grants = append(u.grants, grant{key, "", authpb.READWRITE})
	}
	return u
}

// MissingHost lists the changes that Admit would make.
func MissingHost(ctx context.Context, client *clientv3.Client, host, user, key string) (step.Diff, error) {
	return texts(hostUser(host, user, key).missing(ctx, client))
}

// Admit creates the user of a host. It may write key.
func Admit(ctx context.Context, client *clientv3.Client, host, user, key string) error {
	return apply(hostUser(host, user, key).missing(ctx, client))
}

// keptUsers is how many users a worker has at most: those of its certificate, of the one
// before, which it uses until it has received the new one, and of a request in between.
const keptUsers = 3

// DropFormer deletes the oldest users of a worker except for one. A worker may request any
// number of certificates, and each has a user. The names of the users sort by age.
func DropFormer(ctx context.Context, client *clientv3.Client, host, except string) error {
	all, err := usersOf(ctx, client, host)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(user string) bool { return WorkerOf(user) == "" || user == except })
	slices.Sort(all)
	for _, user := range all[:max(0, len(all)-keptUsers+1)] {
		if err := dropUser(ctx, client, user); err != nil {
			return err
		}
	}
	return nil
}

func dropUser(ctx context.Context, client *clientv3.Client, name string) error {
	_, err := client.UserDelete(ctx, name)
	return step.Wrap(unless(err, rpctypes.ErrUserNotFound), "delete etcd user %s", name)
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

// Revoke deletes the users and the role of a host: its certificates become useless.
func Revoke(ctx context.Context, client *clientv3.Client, host string) error {
	all, err := usersOf(ctx, client, host)
	if err != nil {
		return err
	}
	for _, user := range all {
		if err := dropUser(ctx, client, user); err != nil {
			return err
		}
	}
	_, err = client.RoleDelete(ctx, HostUser(host))
	return unless(err, rpctypes.ErrRoleNotFound)
}
