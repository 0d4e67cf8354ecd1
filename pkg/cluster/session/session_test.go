package session

import "testing"

func TestAClusterThatDoesNotExist(t *testing.T) {
	s := &Session{Options: Options{Name: "typo"}}
	if got, want := s.unknown([]string{"a", "b"}).Error(), "cluster typo does not exist; this engine has a, b [cluster-missing]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
