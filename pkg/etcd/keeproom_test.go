package etcd

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestHistoryDoesNotFillTheDatabase: the leader removes the history before the database reaches
// the quota, and does not repeat it if the keys themselves are that large.
func TestHistoryDoesNotFillTheDatabase(t *testing.T) {
	const quota = 1600
	c := newCluster(t)
	c.add("one", "127.3.2.1", true)
	c.add("two", "127.3.2.2", true)
	leader, other := c.server("one", "127.3.2.1"), c.server("two", "127.3.2.2")
	sizes := map[string]int64{}
	read := func(s MemberContainer, size, live int64, compacts bool) {
		t.Helper()
		c.mu.Lock()
		c.size, c.live, c.asked = size, live, nil
		c.mu.Unlock()
		client, err := s.Member.Client.Connect(t.Context())
		must.NoError(t, err)
		defer client.Close()
		kept := history{client: client, url: s.Member.Client.URL(), quota: quota, left: sizes[s.Member.Name]}
		must.NoError(t, kept.drop(limited(t)))
		sizes[s.Member.Name] = kept.left
		if got := len(c.asked) > 0; got != compacts {
			t.Errorf("%s with %d of %d: asked %v", s.Member.Name, size, quota, c.asked)
		}
	}
	read(leader, quota/4-1, 50, false)
	read(other, quota/2, 50, false)
	read(leader, quota/2, 50, true)
	read(leader, quota/4, 50, true)
	read(leader, quota/2, quota/2-10, true)
	read(leader, quota/2+10, quota/2, false) // the keys themselves
	read(leader, quota/2+quota/16, quota/2, true)
	read(leader, 60, 60, false)
	read(leader, quota/4, 60, true)
}
