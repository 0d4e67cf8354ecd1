package membership

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// fakeEtcd keeps keys, users and roles. It accepts every condition of a transaction.
type fakeEtcd struct {
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedAuthServer

	mu     sync.Mutex
	values map[string]string
	users  map[string][]string // with their roles
	roles  map[string][]*authpb.Permission
	fails  bool // deletions of keys fail
}

var errDown = errors.New("etcd is down")

func newEtcd(t *testing.T) (*fakeEtcd, *clientv3.Client) {
	e := &fakeEtcd{values: map[string]string{}, users: map[string][]string{}, roles: map[string][]*authpb.Permission{}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, e)
	etcdserverpb.RegisterAuthServer(server, e)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	client, err := clientv3.New(clientv3.Config{Context: t.Context(), Endpoints: []string{listener.Addr().String()}, Logger: zap.NewNop()})
	must.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return e, client
}

func (e *fakeEtcd) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{Revision: 1}
}

func (e *fakeEtcd) keys(from, end []byte) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(e.values)) {
		if key == string(from) || len(end) > 0 && key >= string(from) && key < string(end) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (e *fakeEtcd) Range(_ context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := &etcdserverpb.RangeResponse{Header: e.header()}
	for _, key := range e.keys(r.Key, r.RangeEnd) {
		found.Kvs = append(found.Kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(e.values[key])})
	}
	return found, nil
}

func (e *fakeEtcd) DeleteRange(_ context.Context, r *etcdserverpb.DeleteRangeRequest) (*etcdserverpb.DeleteRangeResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fails {
		return nil, errDown
	}
	for _, key := range e.keys(r.Key, r.RangeEnd) {
		delete(e.values, key)
	}
	return &etcdserverpb.DeleteRangeResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	for _, op := range r.Success {
		if del := op.GetRequestDeleteRange(); del != nil {
			if _, err := e.DeleteRange(ctx, del); err != nil {
				return nil, err
			}
		}
		if put := op.GetRequestPut(); put != nil {
			e.put(string(put.Key), string(put.Value))
		}
	}
	return &etcdserverpb.TxnResponse{Header: e.header(), Succeeded: true}, nil
}

func (e *fakeEtcd) Put(_ context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	e.put(string(r.Key), string(r.Value))
	return &etcdserverpb.PutResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) put(key, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.values[key] = value
}

func (e *fakeEtcd) UserList(context.Context, *etcdserverpb.AuthUserListRequest) (*etcdserverpb.AuthUserListResponse, error) {
	return &etcdserverpb.AuthUserListResponse{Header: e.header(), Users: slices.Sorted(maps.Keys(e.users))}, nil
}

func (e *fakeEtcd) UserGet(_ context.Context, r *etcdserverpb.AuthUserGetRequest) (*etcdserverpb.AuthUserGetResponse, error) {
	roles, ok := e.users[r.Name]
	if !ok {
		return nil, rpctypes.ErrGRPCUserNotFound
	}
	return &etcdserverpb.AuthUserGetResponse{Header: e.header(), Roles: roles}, nil
}

func (e *fakeEtcd) UserAdd(_ context.Context, r *etcdserverpb.AuthUserAddRequest) (*etcdserverpb.AuthUserAddResponse, error) {
	e.users[r.Name] = nil
	return &etcdserverpb.AuthUserAddResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) UserDelete(_ context.Context, r *etcdserverpb.AuthUserDeleteRequest) (*etcdserverpb.AuthUserDeleteResponse, error) {
	delete(e.users, r.Name)
	return &etcdserverpb.AuthUserDeleteResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) UserGrantRole(_ context.Context, r *etcdserverpb.AuthUserGrantRoleRequest) (*etcdserverpb.AuthUserGrantRoleResponse, error) {
	e.users[r.User] = append(e.users[r.User], r.Role)
	return &etcdserverpb.AuthUserGrantRoleResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) RoleGet(_ context.Context, r *etcdserverpb.AuthRoleGetRequest) (*etcdserverpb.AuthRoleGetResponse, error) {
	perm, ok := e.roles[r.Role]
	if !ok {
		return nil, rpctypes.ErrGRPCRoleNotFound
	}
	return &etcdserverpb.AuthRoleGetResponse{Header: e.header(), Perm: perm}, nil
}

func (e *fakeEtcd) RoleAdd(_ context.Context, r *etcdserverpb.AuthRoleAddRequest) (*etcdserverpb.AuthRoleAddResponse, error) {
	e.roles[r.Name] = nil
	return &etcdserverpb.AuthRoleAddResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) RoleDelete(_ context.Context, r *etcdserverpb.AuthRoleDeleteRequest) (*etcdserverpb.AuthRoleDeleteResponse, error) {
	delete(e.roles, r.Role)
	return &etcdserverpb.AuthRoleDeleteResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) RoleGrantPermission(_ context.Context, r *etcdserverpb.AuthRoleGrantPermissionRequest) (*etcdserverpb.AuthRoleGrantPermissionResponse, error) {
	e.roles[r.Name] = append(e.roles[r.Name], r.Perm)
	return &etcdserverpb.AuthRoleGrantPermissionResponse{Header: e.header()}, nil
}
