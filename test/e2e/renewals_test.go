//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRenewals runs a cluster of three control planes and two workers with
// certificates that are valid for a quarter of an hour, until each has been
// renewed twice and each key and each authority has been rotated, and loses no
// request to the API or to a Service.
func TestRenewals(t *testing.T) {
	l := clusterUser{cluster: "e2e-w", subnet: "10.221.0.0/16", dir: t.TempDir()}
	t.Cleanup(func() {
		if out, err := l.try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+probeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.sh(t, "mkdir app && cp "+built.probe+" app/probe && tar -C app -c . | docker import - "+probeImage)
	l.sh(t, "kube-bootstrap cluster up --masters 3 --workers 0 --progress none")
	all := []machine{l.node(t, "master-1"), l.node(t, "master-2"), l.node(t, "master-3")}
	for range 2 { // in the first round, a kubelet may ask a signer that still signs for a year
		for _, m := range all {
			m.sh(t, "kube-bootstrap certs renew --lifetime 15m 2>&1")
		}
	}
	// Workers whose first certificates are as short as the others.
	l.sh(t, "kube-bootstrap node add --name one --progress none && kube-bootstrap node add --name two --progress none")
	workers := []machine{l.node(t, "one"), l.node(t, "two")}
	all = append(all, workers...)
	since := time.Now().UTC()
	eventually(t, 2*time.Minute, "nodes and pods", func() error { return allReady(t, all[0], since, len(all)) })
	l.sh(t, "kube-bootstrap cluster load-image "+probeImage)
	startProbes(t, all[0], workers...)
	service := all[0].kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")

	toAPI, toService := requests(t, workers[0], ownNode(workers[0])), requests(t, workers[1], "http://"+service+":8080/")
	// First, because it renews every certificate itself.
	t.Run("new certificate authorities", func(t *testing.T) {
		rotateAuthorities(t, all[:3], workers...)
		l.sh(t, "kube-bootstrap node add --name three --progress none && kube-bootstrap node remove three --yes --progress none")
	})
	seen := map[string][]time.Time{}
	_ = renewedTwice(t, all, seen) // notes the certificates of now
	t.Run("killed and run again", func(t *testing.T) { killedRenewal(t, all[1]) })
	t.Run("a new encryption key", func(t *testing.T) { rotateEncryptionKey(t, all[:3]...) })
	t.Run("a new service account key", func(t *testing.T) { rotateAccountKey(t, all[:3]...) })
	eventually(t, 40*time.Minute, "two renewals of every certificate", func() error {
		time.Sleep(10 * time.Second)
		return renewedTwice(t, all, seen)
	})
	if out := toAPI() + toService(); out != "" {
		t.Errorf("requests were lost:\n%s", out)
	}
	for _, m := range all {
		upToDate(t, m)
	}
}

// killedRenewal kills the renewal on a control plane in several steps. The next
// run finishes it.
func killedRenewal(t *testing.T, m machine) {
	before := expiries(t, m)
	for _, step := range []string{"issue certificates", "join etcd", "have kube-scheduler use its certificate"} {
		if out := killIn(t, m, "kube-bootstrap certs renew", step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	m.sh(t, "kube-bootstrap certs renew 2>&1")
	voters(t, m, 3)
	upToDate(t, m)
	for name, at := range expiries(t, m) {
		if authority := strings.HasSuffix(name, "ca"); at.After(before[name]) == authority {
			t.Errorf("%s expired on %s and now expires on %s", name, before[name], at)
		}
	}
}

// renewedTwice notes when the certificates of the hosts expire, and names those
// that have not been renewed twice since the first call.
func renewedTwice(t *testing.T, all []machine, seen map[string][]time.Time) error {
	t.Helper()
	var missing []string
	for _, m := range all {
		for name, at := range expiries(t, m) {
			key := m.name + " " + name
			if times := seen[key]; len(times) == 0 || !times[len(times)-1].Equal(at) {
				seen[key] = append(seen[key], at)
			}
			if !strings.HasSuffix(name, "ca") && len(seen[key]) < 3 {
				missing = append(missing, key)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not yet: %s", strings.Join(missing, ", "))
	}
	return nil
}
