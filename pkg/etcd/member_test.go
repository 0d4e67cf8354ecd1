package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

func TestClusterToJoinNamesEveryMemberOnce(t *testing.T) {
	m := Member{Client: Client{IP: "10.0.0.1"}, Name: "one"}
	others := []*etcdserverpb.Member{{Name: "two", PeerURLs: []string{"https://10.0.0.2:2380"}}}
	if got := m.initialCluster(others); got != "" {
		t.Errorf("not a member, and yet %q", got)
	}
	// etcd has no name for a member that has not started.
	own := &etcdserverpb.Member{PeerURLs: []string{"https://10.0.0.1:2380"}, IsLearner: true}
	if got, want := m.initialCluster(append(others, own)),
		"one=https://10.0.0.1:2380,two=https://10.0.0.2:2380"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
