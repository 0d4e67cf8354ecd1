package etcd

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// installed returns a member that has run on this host before.
func installed(t *testing.T, ip string) Member {
	t.Helper()
	m := testContainer(t).Member
	m.Client.IP = ip
	ca, err := pki.NewAuthority("etcd", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	root, err := ca.Issue(pki.CertificateRequest{CommonName: "root", Client: true}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{
		m.Client.Credentials.CA: ca.PEM().Cert, m.Client.Credentials.Cert: root.Cert,
		m.Client.Credentials.Key: root.Key, DataDir + "/member/wal/0": nil,
	} {
		if err := m.Data.Files.Write(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// TestNoAnswerIsNoDifference: if etcd is silent or does not listen, nothing is
// known about its users and keys.
func TestNoAnswerIsNoDifference(t *testing.T) {
	silent, err := net.Listen("tcp", "127.3.0.1:2379") // it accepts and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, ip := range map[string]string{"silent": "127.3.0.1", "refused": "127.3.0.2"} {
		m := installed(t, ip)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		for _, s := range []step.Step{m.Client.EnableAuth(), m.List()} {
			if diff, err := s.Check(ctx); len(diff) > 0 || !step.IsUnanswered(err) {
				t.Errorf("%s, %s: got %v, %v", name, s.Name, diff, err)
			}
		}
	}
}

func TestQuorum(t *testing.T) {
	up, down := func(name string) MemberStatus {
		return MemberStatus{Name: name, IP: "10.0.0.1", Up: true}
	}, func(name string) MemberStatus {
		return MemberStatus{Name: name, IP: "10.0.0.9"}
	}
	silent := MemberStatus{Name: "s", IP: "10.0.0.8", Silent: true}
	learner := down("l")
	learner.Learner = true
	if err := Quorum(nil); err != nil {
		t.Errorf("of unknown members: %v", err)
	}
	for want, members := range map[string][]MemberStatus{
		"":  {up("a"), up("b"), down("c"), learner},
		" ": {up("a"), learner},
		// A slow member may be up.
		"  ":  {silent},
		"   ": {silent, up("a"), down("c")},
		"1 of 3 members answer and 2 are required; down: c (10.0.0.9:2379), d": {up("a"), down("c"), down("d")},
		"only if they are lost for good, run `kube-bootstrap master --recover` on a surviving control plane": {
			up("a"), down("c"), down("d"), down("e"),
		},
		"0 of 3 members answer and 2 are required; down: c (10.0.0.9:2379), d": {silent, down("c"), down("d")},
		"1 of 3 members answer and 2 are required; down: b (10.0.0.9:2379), c (10.0.0.9:2379); start or repair 1 of " +
			"their hosts": {up("a"), down("b"), down("c")},
		"1 of 2 members answer and 2 are required; down: b (10.0.0.9:2379); start or repair their hosts": {up("a"),
			down("b")},
	} {
		err := Quorum(members)
		if want = strings.TrimSpace(want); want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
