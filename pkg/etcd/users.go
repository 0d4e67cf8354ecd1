package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// EnableAuth is the step that creates etcd's users and enables
// authentication.
func (e Endpoint) EnableAuth() step.Step {
	return step.Step{Name: "give etcd its users", Check: e.checkAuth, Apply: e.applyAuth}
}

// change is a missing call and its description.
type change struct {
	text string
	call func() error
}

func (e Endpoint) checkAuth(ctx context.Context) (step.Diff, error) {
	all := step.Diff{"add etcd user " + root.name, "enable etcd auth"}
	return e.Look(ctx, all, func(ctx context.Context, client *clientv3.Client) (step.Diff, error) {
		return texts(missing(ctx, client))
	})
}

// applyAuth makes the missing calls in order. It enables authentication last,
// so that the next run can complete an interrupted one.
func (e Endpoint) applyAuth(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	return e.Do(ctx, func(client *clientv3.Client) error { return apply(missing(ctx, client)) })
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

func missing(ctx context.Context, client *clientv3.Client) ([]change, error) {
	all, err := root.missing(ctx, client)
	if err != nil {
		return nil, err
	}
	status, err := client.AuthStatus(ctx)
	if err != nil {
		return nil, err
	}
	if !status.Enabled {
		all = append(all, change{"enable etcd auth", func() error {
			_, err := client.AuthEnable(ctx)
			return err
		}})
	}
	return all, nil
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

// missingRole compares the permissions of a role with the grants, and also
// revokes others.
func (u user) missingRole(ctx context.Context, client *clientv3.Client) ([]change, error) {
	var changes []change
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

// unless returns nil if err is done, which means that the change was made
// meanwhile.
func unless(err, done error) error {
	if errors.Is(err, done) {
		return nil
	}
	return err
}
