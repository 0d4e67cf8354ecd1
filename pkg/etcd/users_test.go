package etcd

import "testing"

// TestWhoseUsersAreDeleted: those of the host, and of no host with a longer name.
func TestWhoseUsersAreDeleted(t *testing.T) {
	for user, want := range map[string]bool{
		HostUser("web"): true, CertificateUser("web", "1a2b3c4d"): true,
		HostUser("web-2"): false, CertificateUser("web-2", "1a2b3c4d"): false, "root": false, "flannel": false,
	} {
		if belongsTo(user, "web") != want {
			t.Errorf("%s belongs to web: %t", user, !want)
		}
	}
}

// TestWhoIsAWorker: no user of a control plane is one.
func TestWhoIsAWorker(t *testing.T) {
	for user, want := range map[string]string{
		CertificateUser("web", "1a2b3c4d"): "web", HostUser("web"): "", "root": "", "etcd-peer": "", "flannel": "",
		"flannel::x": "", "flannel:web:": "",
		"flannel:web:x:y": "", ":web:x": "",
	} {
		if got := WorkerOf(user); got != want {
			t.Errorf("the host of %s is %q", user, got)
		}
	}
}

// TestAHostWritesOneKey: whatever else it is granted, it only reads.
func TestAHostWritesOneKey(t *testing.T) {
	for key, want := range map[string]int{"": 0, "/coreos.com/network/subnets/10.1.7.0-24": 1} {
		writes := 0
		for _, g := range hostUser("web", HostUser("web"), key).grants {
			if g.kind != 0 { // not only READ
				writes++
				if g.key != key || g.end != "" {
					t.Errorf("it writes from %s to %q", g.key, g.end)
				}
			}
		}
		if writes != want {
			t.Errorf("with key %q it has %d grants to write", key, writes)
		}
	}
}
