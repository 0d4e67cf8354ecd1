package etcd

import (
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheNewestVersionIsRecorded: an older etcd cannot read the data of a newer
// etcd, even if a user starts it in spite of the warning.
func TestTheNewestVersionIsRecorded(t *testing.T) {
	data := Data{host.Files{Root: t.TempDir()}}
	for _, c := range []struct{ start, want string }{
		{"3.6.8-0", "3.6.8-0"}, {"3.7.0-0", "3.7.0-0"}, {"3.6.8-0", "3.7.0-0"},
	} {
		if err := data.noteStart(c.start); err != nil {
			t.Fatal(err)
		}
		if got, err := data.Started(); err != nil || got != c.want {
			t.Errorf("after %s: %q, %v, want %q", c.start, got, err, c.want)
		}
	}
	if err := data.remove(); err != nil {
		t.Fatal(err)
	}
	if got, err := data.Started(); err != nil || got != "" {
		t.Errorf("without data: %q, %v", got, err)
	}
}

// TestADamagedRecordIsMissing: etcd must not start with a cluster or a version
// that is not one.
func TestADamagedRecordIsMissing(t *testing.T) {
	data := Data{host.Files{Root: t.TempDir()}}
	for _, c := range []struct {
		path, text, want string
		read             func(Data) (string, error)
	}{
		{startedFile, "3.6.8-0\n", "3.6.8-0", Data.Started},
		{startedFile, "3.6.8-0\x00", "", Data.Started},
		{startedFile, "", "", Data.Started},
		{joinedFile, "one=https://10.0.0.1:2380\n", "one=https://10.0.0.1:2380", Data.cluster},
		{joinedFile, "one=https://10.0.0.1:2380,\n", "", Data.cluster},
		{joinedFile, "\n", "", Data.cluster},
	} {
		if err := data.Files.Write(c.path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.read(data); err != nil || got != c.want {
			t.Errorf("%s with %q: got %q, %v, want %q", c.path, c.text, got, err, c.want)
		}
	}
}

// TestRoomInSpiteOfMembersThatAreDown: the alarm of one member stops the writes of all.
func TestRoomInSpiteOfMembersThatAreDown(t *testing.T) {
	c := newCluster(t)
	c.add("off", "127.3.1.3", false)
	c.add("two", "127.3.1.2", true)
	own := c.add("one", "127.3.1.1", true)
	// never started
	c.members = append(c.members, &etcdserverpb.Member{
		ID: 9, PeerURLs: []string{peerURL("127.3.1.4")}, IsLearner: true,
	})
	s := c.server("one", "127.3.1.1")
	ran(t, s, own, "")
	must.NoError(t, s.Database().Room().Apply(limited(t)))
	if len(c.asked) > 0 {
		t.Errorf("without an alarm: %v", c.asked)
	}
	c.alarms = []*etcdserverpb.AlarmMember{{MemberID: own, Alarm: etcdserverpb.AlarmType_NOSPACE},
		{MemberID: 1, Alarm: etcdserverpb.AlarmType_NOSPACE}}
	applies(t, s, s.Database().Room())
	if want := []string{"compact", "defragment 127.3.1.1", "defragment 127.3.1.2"}; len(c.alarms) > 0 ||
		!slices.Equal(c.asked, want) {
		t.Errorf("got %v, want %v; alarms %v", c.asked, want, c.alarms)
	}
}
