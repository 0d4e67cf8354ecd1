package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// longestLease is the duration of flanneld's leases in seconds.
const longestLease = 24 * 60 * 60

// rule reads a request of one call, and returns an error unless a host may make it.
type rule struct {
	message proto.Message
	writes  bool
	check   func(ctx context.Context, s *server, host string, m proto.Message) error
}

// rules has every call that flanneld 0.28.10 and the agent of a worker make. flanneld also
// revokes a lease that it could not attach: without that, the lease ends by itself. A lease
// belongs to no user, so a worker could revoke that of another host.
var rules = map[string]rule{
	"/etcdserverpb.KV/Range": {message: &etcdserverpb.RangeRequest{},
		check: func(_ context.Context, s *server, _ string, m proto.Message) error {
			r := m.(*etcdserverpb.RangeRequest)
			return errors.Join(only(r, "key", "range_end", "limit", "serializable"), s.readable(r.Key, r.RangeEnd))
		}},
	"/etcdserverpb.Watch/Watch": {message: &etcdserverpb.WatchRequest{},
		check: func(_ context.Context, s *server, _ string, m proto.Message) error {
			return s.watch(m.(*etcdserverpb.WatchRequest))
		}},
	"/etcdserverpb.KV/Put": {message: &etcdserverpb.PutRequest{}, writes: true,
		check: func(ctx context.Context, s *server, host string, m proto.Message) error {
			return s.put(ctx, host, m.(*etcdserverpb.PutRequest))
		}},
	"/etcdserverpb.KV/Txn": {message: &etcdserverpb.TxnRequest{}, writes: true,
		check: func(ctx context.Context, s *server, host string, m proto.Message) error {
			return s.create(ctx, host, m.(*etcdserverpb.TxnRequest))
		}},
	"/etcdserverpb.KV/DeleteRange": {message: &etcdserverpb.DeleteRangeRequest{}, writes: true,
		check: func(_ context.Context, s *server, _ string, m proto.Message) error {
			r := m.(*etcdserverpb.DeleteRangeRequest)
			return errors.Join(only(r, "key"), s.isLease(r.Key))
		}},
	"/etcdserverpb.Lease/LeaseGrant": {message: &etcdserverpb.LeaseGrantRequest{}, writes: true,
		check: func(_ context.Context, _ *server, _ string, m proto.Message) error {
			r := m.(*etcdserverpb.LeaseGrantRequest)
			if r.TTL < 1 || r.TTL > longestLease {
				return fmt.Errorf("TTL: %d is not between 1 and %d seconds", r.TTL, longestLease)
			}
			return only(r, "TTL")
		}},
	"/etcdserverpb.Lease/LeaseTimeToLive": {message: &etcdserverpb.LeaseTimeToLiveRequest{},
		check: func(_ context.Context, _ *server, _ string, m proto.Message) error {
			return only(m, "ID")
		}},
}

// check returns an error unless a host may send these bytes in a call.
func (s *server) check(ctx context.Context, r rule, host string, data []byte) error {
	m := r.message.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	return r.check(ctx, s, host, m)
}

// only returns an error if a message has other fields than these. A field of a later
// etcd is unknown here, and therefore refused too.
func only(m proto.Message, fields ...string) (err error) {
	message := m.ProtoReflect()
	if len(message.GetUnknown()) > 0 {
		err = errors.New("it has unknown fields")
	}
	message.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if !slices.Contains(fields, string(field.Name())) {
			err = errors.Join(err, fmt.Errorf("%s must not be set", field.Name()))
		}
		return true
	})
	return err
}

// readable returns an error unless the keys from key to end lie below one of the prefixes.
func (s *server) readable(key, end []byte) error {
	for _, prefix := range s.Readable {
		last := []byte(clientv3.GetPrefixRangeEnd(prefix))
		inside := bytes.HasPrefix(key, []byte(prefix))
		if inside && (len(end) == 0 || bytes.Compare(key, end) < 0 && bytes.Compare(end, last) <= 0) {
			return nil
		}
	}
	return fmt.Errorf("a worker must not read the keys from %q to %q", key, end)
}

func (s *server) watch(r *etcdserverpb.WatchRequest) error {
	if err := only(r, "create_request", "cancel_request"); err != nil {
		return err
	}
	switch r := r.RequestUnion.(type) {
	case *etcdserverpb.WatchRequest_CreateRequest:
		c := r.CreateRequest
		return errors.Join(only(c, "key", "range_end", "start_revision"), s.readable(c.Key, c.RangeEnd))
	case *etcdserverpb.WatchRequest_CancelRequest:
		return only(r.CancelRequest, "watch_id")
	}
	return errors.New("the request is empty")
}

func (s *server) put(ctx context.Context, host string, r *etcdserverpb.PutRequest) error {
	if err := errors.Join(only(r, "key", "value", "lease"), s.isLease(r.Key)); err != nil {
		return err
	}
	return s.Accept(ctx, host, string(r.Key), r.Value)
}

// create accepts the transaction with which flanneld creates its key: it puts one key
// if that key does not exist.
func (s *server) create(ctx context.Context, host string, r *etcdserverpb.TxnRequest) error {
	if err := only(r, "compare", "success"); err != nil {
		return err
	}
	if len(r.Compare) != 1 || len(r.Success) != 1 || r.Success[0].GetRequestPut() == nil {
		return errors.New("a worker may only create one key in a transaction")
	}
	missing, put := r.Compare[0], r.Success[0].GetRequestPut()
	if missing.Target != etcdserverpb.Compare_VERSION || missing.Result != etcdserverpb.Compare_EQUAL ||
		missing.GetVersion() != 0 || !bytes.Equal(missing.Key, put.Key) {
		return errors.New("a worker may only create a key that does not exist")
	}
	if err := errors.Join(only(missing, "key", "target", "result", "version"),
		only(r.Success[0], "request_put")); err != nil {
		return err
	}
	return s.put(ctx, host, put)
}

// isLease returns an error unless key may be that of a lease. Which of these keys the
// host may write, the rights of its user in etcd say.
func (s *server) isLease(key []byte) error {
	if name, found := strings.CutPrefix(string(key), s.Leases); !found || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("a worker must not write %q", key)
	}
	return nil
}
