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

// FlannelPrefix is all of etcd that flannel's user may touch.
const FlannelPrefix = "/coreos.com/network/"

// user is a user of etcd, known by its certificate's common name, with the one
// role of the same name. The role root may do everything, by its name.
type user struct {
	name   string
	grants []grant
}

// grant is what a role may do with all keys below a prefix.
type grant struct {
	prefix string
	kind   clientv3.PermissionType
}

var users = []user{
	{name: "root"},
	{name: "flannel", grants: []grant{
		{FlannelPrefix, clientv3.PermissionType(clientv3.PermReadWrite)},
		{listPrefix, clientv3.PermissionType(clientv3.PermRead)},
	}},
}

// EnableAuth gives etcd its users and switches its own authorization on.
func (m Member) EnableAuth() step.Step {
	return step.Step{Name: "give etcd its users", Check: m.checkAuth, Apply: m.applyAuth}
}

// change is one call that is missing, with the words for it.
type change struct {
	text string
	call func(context.Context) error
}

func (m Member) checkAuth(ctx context.Context) (step.Diff, error) {
	return m.Look(ctx, everything(), func(ctx context.Context, client *clientv3.Client) (diff step.Diff, err error) {
		changes, err := missing(ctx, client)
		for _, c := range changes {
			diff = append(diff, c.text)
		}
		return diff, err
	})
}

func everything() step.Diff {
	diff := step.Diff{}
	for _, u := range users {
		diff = append(diff, "add etcd user "+u.name)
	}
	return append(diff, "enable etcd auth")
}

// applyAuth makes what is missing in order, auth last: cut short anywhere, the
// next run finds what is still missing.
func (m Member) applyAuth(ctx context.Context) error {
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	client, err := m.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	changes, err := missing(ctx, client)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := c.call(ctx); err != nil {
			return fmt.Errorf("%s: %w", c.text, err)
		}
	}
	return nil
}

func missing(ctx context.Context, client *clientv3.Client) ([]change, error) {
	var all []change
	for _, u := range users {
		changes, err := u.missing(ctx, client)
		if err != nil {
			return nil, fmt.Errorf("look at etcd user %s: %w", u.name, err)
		}
		all = append(all, changes...)
	}
	status, err := client.AuthStatus(ctx)
	if err != nil {
		return nil, err
	}
	if !status.Enabled {
		all = append(all, change{"enable etcd auth", func(ctx context.Context) error {
			_, err := client.AuthEnable(ctx)
			return err
		}})
	}
	return all, nil
}

func (u user) missing(ctx context.Context, client *clientv3.Client) ([]change, error) {
	role, err := u.missingRole(ctx, client)
	if err != nil {
		return nil, err
	}
	grant := change{"grant etcd role " + u.name + " to user " + u.name, func(ctx context.Context) error {
		_, err := client.UserGrantRole(ctx, u.name, u.name)
		return err
	}}
	now, err := client.UserGet(ctx, u.name)
	switch {
	case errors.Is(err, rpctypes.ErrUserNotFound):
		return append(role, change{"add etcd user " + u.name, func(ctx context.Context) error {
			_, err := client.UserAddWithOptions(ctx, u.name, "", &clientv3.UserAddOptions{NoPassword: true})
			return err
		}}, grant), nil
	case err != nil:
		return nil, err
	case !slices.Contains(now.Roles, u.name):
		return append(role, grant), nil
	}
	return role, nil
}

func (u user) missingRole(ctx context.Context, client *clientv3.Client) ([]change, error) {
	var changes []change
	now, err := client.RoleGet(ctx, u.name)
	if errors.Is(err, rpctypes.ErrRoleNotFound) {
		changes = append(changes, change{"add etcd role " + u.name, func(ctx context.Context) error {
			_, err := client.RoleAdd(ctx, u.name)
			return err
		}})
	} else if err != nil {
		return nil, err
	}
	for _, g := range u.grants {
		if now != nil && g.isIn(now.Perm) {
			continue
		}
		changes = append(changes, change{"let etcd role " + u.name + " use " + g.prefix, func(ctx context.Context) error {
			_, err := client.RoleGrantPermission(ctx, u.name, g.prefix, clientv3.GetPrefixRangeEnd(g.prefix), g.kind)
			return err
		}})
	}
	return changes, nil
}

func (g grant) isIn(perms []*authpb.Permission) bool {
	return slices.ContainsFunc(perms, func(p *authpb.Permission) bool {
		return p.PermType == authpb.Permission_Type(g.kind) && string(p.Key) == g.prefix &&
			string(p.RangeEnd) == clientv3.GetPrefixRangeEnd(g.prefix)
	})
}
