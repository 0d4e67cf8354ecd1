package etcd

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const pair = "one=https://127.3.1.1:2380,two=https://127.3.1.2:2380"

// limited returns a context in which a wait without an answer fails a test soon.
func limited(t *testing.T) context.Context { return step.WithLimit(t.Context(), 20*time.Second) }

func applies(t *testing.T, s MemberContainer, of step.Step) {
	t.Helper()
	must.NoError(t, of.Apply(limited(t)))
	if diff, err := of.Check(limited(t)); len(diff) > 0 || err != nil {
		t.Errorf("after %s: %v, %v", of.Name, diff, err)
	}
}

func hasProblem(err error, name string) bool {
	found := step.Problems(err)
	return len(found) == 1 && found[0].Name == name
}

// TestTheLastControlPlaneHasJoined: the others have left, so that nobody can be asked.
func TestTheLastControlPlaneHasJoined(t *testing.T) {
	for _, cluster := range []string{pair, ""} { // "": the file was lost
		c := newCluster(t)
		s := c.server("two", "127.3.1.2")
		ran(t, s, c.add("two", "127.3.1.2", false), cluster)
		applies(t, s, s.Stay())
		if len(c.asked) > 0 {
			t.Errorf("changes of the members: %v", c.asked)
		}
		c.up["127.3.1.2"].Stop()
	}
}

// TestAMemberThatTheQuorumNeedsStarts: the other member waits for this one.
func TestAMemberThatTheQuorumNeedsStarts(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	s := c.server("two", "127.3.1.2", "127.3.1.1", "127.3.1.3")
	ran(t, s, c.add("two", "127.3.1.2", false), pair)
	c.add("three", "127.3.1.3", false)
	applies(t, s, s.Stay())
	if len(c.asked) > 0 {
		t.Errorf("changes of the members: %v", c.asked)
	}
}

// TestOnlyAnAdministratorAddsARemovedMember: a host that was removed while it was off
// stays removed until somebody runs a command there.
func TestOnlyAnAdministratorAddsARemovedMember(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	c.last = 7
	s := c.server("two", "127.3.1.2", "127.3.1.1")
	ran(t, s, 7, pair)
	for range 2 { // the agent repeats its repairs
		if err := s.Stay().Apply(limited(t)); !hasProblem(err, "etcd-removed") {
			t.Fatalf("got %v", err)
		}
	}
	if len(c.asked) > 0 || !s.Member.Data.hasWAL() || !s.Member.Data.Files.Exists(joinedFile) {
		t.Fatalf("changes of the members: %v", c.asked)
	}
	applies(t, s, s.Join())
	if want := []string{"add https://127.3.1.2:2380"}; !slices.Equal(c.asked, want) || c.at("127.3.1.2").IsLearner {
		t.Errorf("got %v, want %v", c.asked, want)
	}
}

// TestARemovedMemberThatIsSilent: the others filter its packets, so its etcd waits for
// them for ever.
func TestARemovedMemberThatIsSilent(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	s := c.server("two", "127.3.1.2", "127.3.1.1")
	ran(t, s, c.add("two", "127.3.1.2", false), pair)
	applies(t, s, s.Stay())
	c.up["127.3.1.2"].Stop()
	c.members = c.members[:1]
	silent, err := net.Listen("tcp", "127.3.1.2:2379") // it accepts and never answers
	must.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	diff, err := s.Stay().Check(ctx)
	if !strings.Contains(diff.String(), "[etcd-removed]") {
		t.Errorf("got %v, %v", diff, err)
	}
}

// TestLostDataAreReplacedByAnAdministrator: the member could not catch up under its old ID.
func TestLostDataAreReplacedByAnAdministrator(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	c.add("two", "127.3.1.2", false)
	c.add("three", "127.3.1.3", true)
	s := c.server("two", "127.3.1.2", "127.3.1.1", "127.3.1.3")
	must.NoError(t, s.Member.Data.Files.Write(joinedFile, []byte(pair+"\n"), 0o600))
	must.NoError(t, s.Member.Data.Files.MkdirAll(DataDir+"/member/snap")) // of a start that has failed
	if err := s.Stay().Apply(limited(t)); !hasProblem(err, "etcd-data") || len(c.asked) > 0 {
		t.Fatalf("got %v and changes %v", err, c.asked)
	}
	applies(t, s, s.Join())
	if want := []string{"remove 2", "add https://127.3.1.2:2380"}; !slices.Equal(c.asked, want) {
		t.Errorf("got %v, want %v", c.asked, want)
	}
}

// TestAnAddedMemberStartsWithTheMembersOfNow: others have joined or left since it was added.
func TestAnAddedMemberStartsWithTheMembersOfNow(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	c.add("", "127.3.1.2", false)
	c.members[1].IsLearner = true
	s := c.server("two", "127.3.1.2", "127.3.1.1")
	must.NoError(t, s.Member.Data.Files.Write(joinedFile, []byte(pair+",three=https://127.3.1.3:2380\n"), 0o600))
	applies(t, s, s.Join())
	if cluster, err := s.Member.Data.cluster(); cluster != pair || err != nil || len(c.asked) > 0 {
		t.Errorf("got %s, %v and changes %v", cluster, err, c.asked)
	}
}

// TestAnInterruptedRemovalOfDataCompletes: without joinedFile, nothing starts with a part of the data.
func TestAnInterruptedRemovalOfDataCompletes(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", true)
	s := c.server("two", "127.3.1.2", "127.3.1.1")
	c.last = 7
	ran(t, s, 7, "")
	applies(t, s, s.Join())
	if want := []string{"add https://127.3.1.2:2380"}; !slices.Equal(c.asked, want) {
		t.Errorf("got %v, want %v", c.asked, want)
	}
}

// TestTheFirstMemberDoesNotBeginAnotherCluster: the others have its data.
func TestTheFirstMemberDoesNotBeginAnotherCluster(t *testing.T) {
	c := newCluster(t)
	c.add("one", "127.3.1.1", false)
	c.add("two", "127.3.1.2", true)
	c.add("three", "127.3.1.3", true)
	s := c.server("one", "127.3.1.1", "127.3.1.2", "127.3.1.3")
	if err := s.Start().Apply(limited(t)); !hasProblem(err, "etcd-data") || s.Member.Data.hasWAL() {
		t.Fatalf("without data: %v", err)
	}
	ran(t, s, 1, "")
	applies(t, s, s.Start())
}

// TestTheFirstMemberSaysThatItWasRemoved: its etcd ends without an error.
func TestTheFirstMemberSaysThatItWasRemoved(t *testing.T) {
	c := newCluster(t)
	c.add("two", "127.3.1.2", true)
	s := c.server("one", "127.3.1.1", "127.3.1.2")
	ran(t, s, 9, "")
	if err := s.Start().Apply(limited(t)); !hasProblem(err, "etcd-removed") || !s.Member.Data.hasWAL() {
		t.Errorf("got %v", err)
	}
}
