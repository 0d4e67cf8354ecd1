package gate

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const (
	network = "/coreos.com/network/"
	own     = network + "subnets/10.1.7.0-24"
	lease   = `{"PublicIP":"192.0.2.7"}`
)

func testGate() *server {
	return &server{Gate: Gate{
		Readable: []string{network, "/kube-bootstrap/control-planes/"}, Leases: network + "subnets/",
		Accept: func(_ context.Context, host, key string, value []byte) error {
			if host != "web" || key != own || string(value) != lease {
				return errors.New("not the lease of this host")
			}
			return nil
		},
	}}
}

func ask(t *testing.T, method string, m proto.Message) error {
	t.Helper()
	data, err := proto.Marshal(m)
	must.NoError(t, err)
	rule, known := rules[method]
	if !known {
		t.Fatalf("%s is no call of a worker", method)
	}
	return testGate().check(t.Context(), rule, "web", data)
}

type request struct {
	what, method string
	message      proto.Message
}

const (
	kv       = "/etcdserverpb.KV/"
	watching = "/etcdserverpb.Watch/Watch"
	leasing  = "/etcdserverpb.Lease/"
)

func prefixEnd(prefix string) []byte { return []byte(clientv3.GetPrefixRangeEnd(prefix)) }

func put(key, value string) *etcdserverpb.PutRequest {
	return &etcdserverpb.PutRequest{Key: []byte(key), Value: []byte(value), Lease: 7}
}

func opPut(p *etcdserverpb.PutRequest) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestPut{RequestPut: p}}
}

func opTxn(t *etcdserverpb.TxnRequest) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestTxn{RequestTxn: t}}
}

func opRange(key string) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{
		Request: &etcdserverpb.RequestOp_RequestRange{RequestRange: &etcdserverpb.RangeRequest{Key: []byte(key)}},
	}
}

func missing(key string) *etcdserverpb.Compare {
	return &etcdserverpb.Compare{Key: []byte(key), TargetUnion: &etcdserverpb.Compare_Version{}}
}

func txn(compare *etcdserverpb.Compare, ops ...*etcdserverpb.RequestOp) *etcdserverpb.TxnRequest {
	return &etcdserverpb.TxnRequest{Compare: []*etcdserverpb.Compare{compare}, Success: ops}
}

func create(c *etcdserverpb.WatchCreateRequest) *etcdserverpb.WatchRequest {
	return &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: c}}
}

// TestWhatFlanneldAsks: flanneld and the agent of a worker make these requests.
func TestWhatFlanneldAsks(t *testing.T) {
	for _, r := range []request{
		{"the configuration", kv + "Range", &etcdserverpb.RangeRequest{Key: []byte(network + "config")}},
		{"all leases", kv + "Range", &etcdserverpb.RangeRequest{
			Key: []byte(network + "subnets"), RangeEnd: prefixEnd(network + "subnets"), Serializable: true,
		}},
		{"the control planes", kv + "Range", &etcdserverpb.RangeRequest{
			Key: []byte("/kube-bootstrap/control-planes/"), RangeEnd: prefixEnd("/kube-bootstrap/control-planes/"),
		}},
		{"the leases from now on", watching, create(&etcdserverpb.WatchCreateRequest{
			Key: []byte(network + "subnets"), RangeEnd: prefixEnd(network + "subnets"), StartRevision: 9,
		})},
		{"no more", watching, &etcdserverpb.WatchRequest{
			RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{
				CancelRequest: &etcdserverpb.WatchCancelRequest{WatchId: 1},
			},
		}},
		{"a lease", leasing + "LeaseGrant", &etcdserverpb.LeaseGrantRequest{TTL: 86400}},
		{"the age of a lease", leasing + "LeaseTimeToLive", &etcdserverpb.LeaseTimeToLiveRequest{ID: 7}},
		{"its subnet", kv + "Txn", txn(missing(own), opPut(put(own, lease)))},
		{"its subnet again", kv + "Put", put(own, lease)},
		{"its subnet no longer", kv + "DeleteRange", &etcdserverpb.DeleteRangeRequest{Key: []byte(own)}},
	} {
		if err := ask(t, r.method, r.message); err != nil {
			t.Errorf("flanneld asks for %s: %v", r.what, err)
		}
	}
}

// TestWhatAWorkerMustNotAsk: with each of these requests, a worker would read or change
// more than flannel's network, in an etcd that enforces no rights.
func TestWhatAWorkerMustNotAsk(t *testing.T) {
	watch := func(c *etcdserverpb.WatchCreateRequest) *etcdserverpb.WatchRequest {
		c.Key = []byte(network + "config")
		return create(c)
	}
	ofLease := func(change func(*etcdserverpb.PutRequest)) *etcdserverpb.PutRequest {
		p := put(own, lease)
		change(p)
		return p
	}
	for _, r := range []request{
		{"the Secrets", kv + "Range", &etcdserverpb.RangeRequest{
			Key: []byte("/registry/secrets/"), RangeEnd: prefixEnd("/registry/secrets/"),
		}},
		{"everything", kv + "Range", &etcdserverpb.RangeRequest{Key: []byte{0}, RangeEnd: []byte{0}}},
		{"everything after", kv + "Range",
			&etcdserverpb.RangeRequest{Key: []byte(network + "config"), RangeEnd: []byte{0}}},
		{"a little more", kv + "Range", &etcdserverpb.RangeRequest{
			Key: []byte(network), RangeEnd: []byte("/coreos.com/network0\x00"),
		}},
		{"a range backwards", kv + "Range",
			&etcdserverpb.RangeRequest{Key: []byte(network + "z"), RangeEnd: []byte(network + "a")}},
		{"what was before", kv + "Range", &etcdserverpb.RangeRequest{Key: []byte(network + "config"), Revision: 1}},
		{"a prefix of the prefix", kv + "Range",
			&etcdserverpb.RangeRequest{Key: []byte("/coreos.com/"), RangeEnd: prefixEnd(network)}},
		{"all changes after a key", watching, watch(&etcdserverpb.WatchCreateRequest{RangeEnd: []byte{0}})},
		{"the values before", watching, watch(&etcdserverpb.WatchCreateRequest{PrevKv: true})},
		{"the progress", watching, watch(&etcdserverpb.WatchCreateRequest{ProgressNotify: true})},
		{"a number of its own", watching, watch(&etcdserverpb.WatchCreateRequest{WatchId: 9})},
		{"nothing", watching, &etcdserverpb.WatchRequest{}},
		{"the progress of all", watching, &etcdserverpb.WatchRequest{
			RequestUnion: &etcdserverpb.WatchRequest_ProgressRequest{ProgressRequest: &etcdserverpb.WatchProgressRequest{}},
		}},
		{"an endless lease", leasing + "LeaseGrant", &etcdserverpb.LeaseGrantRequest{TTL: 1 << 40}},
		{"a lease without a time", leasing + "LeaseGrant", &etcdserverpb.LeaseGrantRequest{}},
		{"the lease of somebody", leasing + "LeaseGrant", &etcdserverpb.LeaseGrantRequest{TTL: 60, ID: 7}},
		{"the keys of a lease", leasing + "LeaseTimeToLive", &etcdserverpb.LeaseTimeToLiveRequest{ID: 7, Keys: true}},
		{"a role", kv + "Put", put("/registry/clusterrolebindings/x", lease)},
		{"a subnet that is not its own", kv + "Put", put(network+"subnets/10.1.8.0-24", lease)},
		{"another address", kv + "Put", put(own, `{"PublicIP":"192.0.2.8"}`)},
		{"the network", kv + "Put", put(network+"config", "{}")},
		{"a reservation", kv + "Put", put(network+"reserved/10.1.7.0-24", "web")},
		{"a key below its own", kv + "Put", put(own+"/x", lease)},
		{"the value before", kv + "Put", ofLease(func(p *etcdserverpb.PutRequest) { p.PrevKv = true })},
		{"the value as it is", kv + "Put", ofLease(func(p *etcdserverpb.PutRequest) { p.IgnoreValue = true })},
		{"the lease as it is", kv + "Put", ofLease(func(p *etcdserverpb.PutRequest) { p.IgnoreLease = true })},
		{"nested", kv + "Txn", txn(missing(own), opTxn(txn(missing(own), opPut(put(own, lease)))))},
		{"a nested read", kv + "Txn", txn(missing(own), opTxn(txn(missing(own), opRange("/registry/secrets/x"))))},
		{"a read", kv + "Txn", txn(missing(own), opRange(own))},
		{"two writes", kv + "Txn", txn(missing(own), opPut(put(own, lease)), opPut(put("/registry/x", lease)))},
		{"the value before, in a transaction", kv + "Txn",
			txn(missing(own), opPut(ofLease(func(p *etcdserverpb.PutRequest) { p.PrevKv = true })))},
		{"whether a Secret exists", kv + "Txn", txn(missing("/registry/secrets/x"), opPut(put(own, lease)))},
		{"a range that exists", kv + "Txn",
			txn(&etcdserverpb.Compare{Key: []byte(own), RangeEnd: []byte{0},
				TargetUnion: &etcdserverpb.Compare_Version{}}, opPut(put(own, lease)))},
		{"a value", kv + "Txn",
			txn(&etcdserverpb.Compare{Key: []byte(own), Target: etcdserverpb.Compare_VALUE,
				TargetUnion: &etcdserverpb.Compare_Value{Value: []byte("x")}}, opPut(put(own, lease)))},
		{"no condition", kv + "Txn", &etcdserverpb.TxnRequest{
			Success: []*etcdserverpb.RequestOp{opPut(put(own, lease))},
		}},
		{"something else on failure", kv + "Txn",
			&etcdserverpb.TxnRequest{Compare: []*etcdserverpb.Compare{missing(own)},
				Success: []*etcdserverpb.RequestOp{opPut(put(own, lease))},
				Failure: []*etcdserverpb.RequestOp{opRange("/registry/secrets/x")}}},
		{"all leases gone", kv + "DeleteRange",
			&etcdserverpb.DeleteRangeRequest{Key: []byte(own), RangeEnd: prefixEnd(network)}},
		{"what it deletes", kv + "DeleteRange", &etcdserverpb.DeleteRangeRequest{Key: []byte(own), PrevKv: true}},
		{"the network gone", kv + "DeleteRange", &etcdserverpb.DeleteRangeRequest{Key: []byte(network + "config")}},
	} {
		if err := ask(t, r.method, r.message); err == nil {
			t.Errorf("a worker may ask for %s", r.what)
		}
	}
}

// TestUnknownFieldsAreRefused: a later etcd may give them a meaning.
func TestUnknownFieldsAreRefused(t *testing.T) {
	data, err := proto.Marshal(&etcdserverpb.RangeRequest{Key: []byte(network + "config")})
	must.NoError(t, err)
	data = protowire.AppendVarint(protowire.AppendTag(data, 99, protowire.VarintType), 1)
	if err := testGate().check(t.Context(), rules[kv+"Range"], "web", data); err == nil {
		t.Error("an unknown field is passed")
	}
	if err := testGate().check(t.Context(), rules[kv+"Range"], "web", []byte("garbage")); err == nil {
		t.Error("garbage is passed")
	}
}

// TestOtherCallsAreRefused lists calls with which a worker could do harm.
func TestOtherCallsAreRefused(t *testing.T) {
	for _, call := range []string{
		kv + "Compact", leasing + "LeaseRevoke", leasing + "LeaseLeases", leasing + "LeaseKeepAlive",
		"/etcdserverpb.Auth/UserAdd", "/etcdserverpb.Auth/Authenticate",
		"/etcdserverpb.Auth/AuthDisable", "/etcdserverpb.Maintenance/Snapshot", "/etcdserverpb.Maintenance/Alarm",
		"/etcdserverpb.Cluster/MemberList",
		"/v3lockpb.Lock/Lock", "/v3electionpb.Election/Campaign", "/grpc.health.v1.Health/Check",
	} {
		if _, known := rules[call]; known {
			t.Errorf("a worker may call %s", call)
		}
	}
}
