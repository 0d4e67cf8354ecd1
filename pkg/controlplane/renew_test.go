package controlplane

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

func TestRenewIssuesTheNamedCertificatesAndNoOthers(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	before := snapshot(t, c)
	renew := c.Renew([]string{"apiserver", "admin.conf"})
	if d, err := renew.Check(t.Context()); err != nil || len(d) != 2 {
		t.Errorf("before: %q, %v", d, err)
	}
	if err := renew.Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := renew.Check(t.Context()); err != nil || len(d) > 0 {
		t.Errorf("after: %q, %v", d, err)
	}
	for path, data := range snapshot(t, c) {
		renewed := slices.Contains([]string{apiserver + ".crt", apiserver + ".key", AdminConf}, path)
		if bytes.Equal(data, before[path]) == renewed {
			t.Errorf("%s: renewed %t", path, renewed)
		}
	}
}

// A renewal that was killed after some certificates continues with the others.
func TestARenewalContinues(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	renew := c.Renew([]string{"etcd-server", "etcd-peer", "scheduler.conf"})
	if err := c.Renew([]string{"etcd-server"}).Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := renew.Check(t.Context()); err != nil || len(d) != 2 || strings.Contains(d.String(), "server.crt") {
		t.Errorf("after one of three: %q, %v", d, err)
	}
}

func TestDueAfterTwoThirdsOfTheLifetime(t *testing.T) {
	c := fresh(t)
	c.LeafLife = 15 * time.Minute
	issue(t, c)
	if err := c.Files.Remove(SuperAdminConf); err != nil {
		t.Fatal(err)
	}
	if due := c.Due(); len(due) > 0 {
		t.Errorf("at once: %q", due)
	}
	c.Now = func() time.Time { return now.Add(12 * time.Minute) }
	if due := c.Due(); len(due) != len(c.leaves())-1 || slices.Contains(due, "super-admin.conf") ||
		!slices.Contains(due, "etcd-flannel") {
		t.Errorf("near the end: %q", due)
	}
	for _, held := range Held() {
		if one := held.Inspect(c.Files.Read, now); one.DaysLeft == 0 && one.Problem == "" &&
			!strings.HasSuffix(held.Name, "ca") && one.Expires.Sub(now) != c.LeafLife {
			t.Errorf("%s expires on %s", one.Name, one.Expires)
		}
	}
}

func TestLeafLife(t *testing.T) {
	c := fresh(t)
	if d := ReadLeafLife(c.Files); d != 0 {
		t.Errorf("a fresh host: %s", d)
	}
	for d, valid := range map[time.Duration]bool{
		time.Minute: false, MinLeafLife: true, pki.LeafLife: true, pki.AuthorityLife: false,
	} {
		if err := ValidLeafLife(d); (err == nil) != valid {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := SetLeafLife(c.Files, time.Hour); err != nil || ReadLeafLife(c.Files) != time.Hour {
		t.Errorf("read %s, %v", ReadLeafLife(c.Files), err)
	}
	c.LeafLife = time.Hour
	if args := strings.Join(flagsOf(t, pods(c), "kube-controller-manager"), " "); !strings.Contains(args,
		"--cluster-signing-duration=1h0m0s") {
		t.Errorf("the controller manager signs for the usual lifetime: %s", args)
	}
}

// TestARemovedSuperAdminStaysAway: only the first run and a renewal by name issue
// super-admin.conf.
func TestARemovedSuperAdminStaysAway(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	if err := c.Files.Remove(SuperAdminConf); err != nil {
		t.Fatal(err)
	}
	later := c
	later.Now = func() time.Time { return now.Add(pki.LeafLife - time.Hour) }
	issue(t, later)
	if c.Files.Exists(SuperAdminConf) {
		t.Error("a later run has issued super-admin.conf again")
	}
	if _, err := c.superClient(); err != nil {
		t.Error("the administrators cannot be granted their rights:", err)
	}
	if err := c.Renew([]string{"super-admin.conf"}).Apply(t.Context()); err != nil || !c.Files.Exists(SuperAdminConf) {
		t.Errorf("a renewal by name has not issued super-admin.conf: %v", err)
	}
	if err := c.Files.Remove(AdminConf); err != nil {
		t.Fatal(err)
	}
	if err := c.Files.Remove(SuperAdminConf); err != nil {
		t.Fatal(err)
	}
	issue(t, c)
	if !c.Files.Exists(SuperAdminConf) {
		t.Error("a first run that was interrupted does not issue super-admin.conf")
	}
}
