//go:build e2e

package long

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestRenewals runs a cluster of three control planes and two workers with
// certificates that are valid for a quarter of an hour, until each has been
// renewed twice and each key and each authority has been rotated, and loses no
// request to the API or to a Service.
func TestRenewals(t *testing.T) {
	l := localcluster.User{Cluster: "e2e-w", Subnet: "10.221.0.0/16", Dir: t.TempDir()}
	t.Cleanup(func() {
		if out, err := l.Try(context.Background(), "kube-bootstrap cluster clean --yes; docker rmi -f "+
			hosts.ProbeImage); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	l.Sh(t, "mkdir app && cp "+hosts.Built.Probe+" app/probe && tar -C app -c . | docker import - "+hosts.ProbeImage)
	l.Sh(t, "kube-bootstrap cluster up --masters 3 --workers 0 --progress none")
	all := []hosts.Machine{l.Node(t, "master-1"), l.Node(t, "master-2"), l.Node(t, "master-3")}
	for range 2 { // in the first round, a kubelet may ask a signer that still signs for a year
		for _, m := range all {
			m.Sh(t, "kube-bootstrap certs renew --lifetime 15m 2>&1")
		}
	}
	// Workers whose first certificates are as short as the others.
	l.Sh(t, "kube-bootstrap node add --name one --progress none && kube-bootstrap node add --name two --progress none")
	workers := []hosts.Machine{l.Node(t, "one"), l.Node(t, "two")}
	all = append(all, workers...)
	since := time.Now().UTC()
	wait.Until(t, 2*time.Minute, "nodes and pods", func() error {
		return clusters.AllReady(t, all[0], since,
			len(all))
	})
	l.Sh(t, "kube-bootstrap cluster load-image "+hosts.ProbeImage)
	traffic.StartProbes(t, all[0], workers...)
	service := all[0].Kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")

	toAPI, toService := requests(t, workers[0], ownNode(workers[0])),
		requests(t, workers[1], "http://"+service+":8080/")
	// First, because it renews every certificate itself.
	t.Run("new certificate authorities", func(t *testing.T) {
		rotateAuthorities(t, all[:3], workers...)
		l.Sh(t, "kube-bootstrap node add --name three --progress none && "+
			"kube-bootstrap node remove three --yes --progress none")
	})
	seen := map[string][]time.Time{}
	_ = renewedTwice(t, all, seen) // notes the certificates of now
	t.Run("killed and run again", func(t *testing.T) { killedRenewal(t, all[1]) })
	t.Run("a new encryption key", func(t *testing.T) { rotateEncryptionKey(t, all[:3]...) })
	t.Run("a new service account key", func(t *testing.T) { rotateAccountKey(t, all[:3]...) })
	wait.Until(t, 40*time.Minute, "two renewals of every certificate", func() error {
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
func killedRenewal(t *testing.T, m hosts.Machine) {
	before := expiries(t, m)
	for _, step := range []string{"issue certificates", "join etcd", "have kube-scheduler use its certificate"} {
		if out := clusters.KillIn(t, m, "kube-bootstrap certs renew", step); out != "137 "+step {
			t.Errorf("killed in %q: %s", step, out)
		}
	}
	m.Sh(t, "kube-bootstrap certs renew 2>&1")
	clusters.Voters(t, m, 3)
	upToDate(t, m)
	for name, at := range expiries(t, m) {
		if authority := strings.HasSuffix(name, "ca"); at.After(before[name]) == authority {
			t.Errorf("%s expired on %s and now expires on %s", name, before[name], at)
		}
	}
}

// renewedTwice notes when the certificates of the hosts expire, and names those
// that have not been renewed twice since the first call.
func renewedTwice(t *testing.T, all []hosts.Machine, seen map[string][]time.Time) error {
	t.Helper()
	var missing []string
	for _, m := range all {
		for name, at := range expiries(t, m) {
			key := m.Name + " " + name
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
