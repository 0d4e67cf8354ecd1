//go:build e2e

package long

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// backupYAML is what the backup contains, and gapYAML what is created after it.
const backupYAML = `apiVersion: v1
kind: Secret
metadata: {name: kept}
stringData: {word: kept}
---
` + deployment

const gapYAML = `apiVersion: v1
kind: Service
metadata: {name: gap}
spec: {selector: {app: gap}, ports: [{port: 80}]}
---
` + deployment

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 3
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: pause, image: "registry.k8s.io/pause:3.10.2", imagePullPolicy: Never}]`

// backed is a cluster with a backup of it, which the machine of the test keeps.
type backed struct {
	first, worker, fresh hosts.Machine
	file                 string // on each machine
	revision             int64  // at the loss of the control plane
}

const restoreBackup = "kube-bootstrap restore /root/cluster.backup --identity /root/backup.key --bundle " + hosts.Bundle

// TestBackup restores a backup on the same host, after a kill, and on a fresh host with another name and address.
func TestBackup(t *testing.T) {
	all := hosts.New(t, "docker-28.5", "10.193.61.0/24", "e2e-backup-a", "e2e-backup-w", "e2e-backup-n")
	c := &backed{first: all[0], worker: all[1], fresh: all[2], file: "/root/cluster.backup"}
	for _, m := range all {
		hosts.LoadProbe(t, m)
	}
	clusters.Up(t, c.first, c.worker, "--no-dedicated")
	c.backUp(t)
	t.Run("damaged files are refused", c.refuses)
	t.Run("the same host", c.sameHost)
	t.Run("a fresh host with another address", c.freshHost)
}

// backUp makes the backup, and then what the cluster has after the backup only.
func (c *backed) backUp(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	must.NoError(t, err)
	key := filepath.Join(t.TempDir(), "backup.key")
	must.Write(t, key, id.String()+"\n")
	traffic.Apply(t, c.first, strings.ReplaceAll(backupYAML, "NAME", "web"))
	c.first.Kubectl(t, "rollout status deployment/web --timeout=2m")
	c.first.Sh(t, "kube-bootstrap backup create "+c.file+" --recipient "+id.Recipient().String())
	copied := filepath.Join(t.TempDir(), "cluster.backup")
	hosts.Docker(t, "cp", c.first.Name+":"+c.file, copied)
	for _, m := range []hosts.Machine{c.first, c.fresh} {
		m.Put(t, key, "/root/backup.key")
		m.Put(t, copied, c.file)
	}
	found := c.fresh.Sh(t, "kube-bootstrap backup verify "+c.file+" --identity /root/backup.key --deep")
	if !strings.Contains(found, "Objects") || !strings.Contains(found, c.first.Name) {
		t.Errorf("backup verify prints\n%s", found)
	}
	traffic.Apply(t, c.first, strings.ReplaceAll(gapYAML, "NAME", "gap"))
	c.first.Kubectl(t, "rollout status deployment/gap --timeout=2m")
	wait.Until(t, time.Minute, "the Service on the worker", func() error { return c.rules(t, true) })
	c.revision = revision(t, c.first)
}

// rules returns an error unless kube-proxy of the worker has rules of the Service gap as wanted.
func (c *backed) rules(t *testing.T, wanted bool) error {
	if out := c.worker.Sh(t, "iptables-save | grep -c default/gap || true"); (out != "0") != wanted {
		return fmt.Errorf("%s rules of the Service gap", out)
	}
	return nil
}

// revision returns the revision of the cluster. kubectl itself omits that of a list.
func revision(t *testing.T, m hosts.Machine) int64 {
	t.Helper()
	var list metav1.PartialObjectMetadataList
	must.NoError(t, json.Unmarshal([]byte(m.Kubectl(t, "get --raw /api/v1/namespaces")), &list))
	number, err := strconv.ParseInt(list.ResourceVersion, 10, 64)
	must.NoError(t, err)
	return number
}

// refuses expects that a damaged backup changes nothing on a bare host.
func (c *backed) refuses(t *testing.T) {
	for name, damage := range map[string]string{
		"cut":     "head -c 5000 cluster.backup >damaged",
		"flipped": `cp cluster.backup damaged; printf x | dd of=damaged bs=1 seek=6000 conv=notrunc status=none`,
		"longer":  "(cat cluster.backup; echo) >damaged",
	} {
		c.fresh.Sh(t, "cd /root && "+damage)
		for _, command := range []string{"backup verify", "restore"} {
			out, err := c.fresh.Try(t.Context(),
				"kube-bootstrap "+command+" /root/damaged --identity /root/backup.key 2>&1")
			if err == nil || !strings.Contains(out+err.Error(), "[backup-damaged]") {
				t.Errorf("%s, %s: %v\n%s", name, command, err, out)
			}
		}
	}
	out, err := c.fresh.Try(t.Context(), "kube-bootstrap restore "+c.file+" 2>&1")
	if err == nil || !strings.Contains(out+err.Error(), "[backup-key]") {
		t.Errorf("without the key: %v\n%s", err, out)
	}
	c.fresh.Sh(t, "! test -e /var/lib/kube-bootstrap && ! test -e /etc/kubernetes")
}

// sameHost restores the backup on the host of the backup. The worker comes back without a command.
func (c *backed) sameHost(t *testing.T) {
	c.first.Sh(t, "kube-bootstrap turndown --yes")
	clusters.KillIn(t, c.first, restoreBackup, "restore the data of etcd")
	out, err := c.first.Try(t.Context(), "kube-bootstrap master --bundle "+hosts.Bundle+" 2>&1")
	if err == nil || !strings.Contains(out+err.Error(), "[restore-unfinished]") {
		t.Errorf("master after a killed restore: %v\n%s", err, out)
	}
	began := time.Now()
	c.first.Sh(t, restoreBackup)
	t.Logf("restore: %s", time.Since(began).Round(time.Second/10))
	c.isRestored(t, c.first, began)
}

// isRestored expects the state of the backup on all hosts.
func (c *backed) isRestored(t *testing.T, m hosts.Machine, began time.Time) {
	t.Helper()
	wait.Until(t, time.Minute, "the rules of the Service to go", func() error { return c.rules(t, false) })
	if word := m.Kubectl(t, "get secret kept -o jsonpath={.data.word}"); word != "a2VwdA==" {
		t.Errorf("the Secret is %q", word)
	}
	if now := revision(t, m); now <= c.revision {
		t.Errorf("the revision is %d, and was %d", now, c.revision)
	}
	wait.Until(t, time.Minute, "the pods to go", func() error {
		if out := c.worker.Sh(t, "ctr -n k8s.io containers ls | grep -c gap- || true"); out != "0" {
			return fmt.Errorf("%s containers", out)
		}
		return nil
	})
	t.Logf("restored after %s", time.Since(began).Round(time.Second))
	m.Kubectl(t, "rollout status deployment/web --timeout=2m")
}

// freshHost restores the backup on another host. The worker needs one command, and the lost control plane too.
func (c *backed) freshHost(t *testing.T) {
	c.revision = revision(t, c.first)
	hosts.Power(t, "stop", c.first)
	began := time.Now()
	said := c.fresh.Sh(t, restoreBackup+" 2>&1")
	command := "kube-bootstrap worker --master-ip " + c.fresh.IP
	for _, want := range []string{command, "kube-bootstrap forget " + c.first.Name} {
		if !strings.Contains(said, want) {
			t.Errorf("restore does not print %q:\n%s", want, said)
		}
	}
	c.worker.Sh(t, command)
	c.fresh.Sh(t, "kube-bootstrap forget "+c.first.Name)
	c.isRestored(t, c.fresh, began)
	wait.Until(t, time.Minute, "two nodes",
		func() error { return clusters.AllReady(t, c.fresh, began.UTC(), 2) })
	if broken := clusters.Broken(t, c.fresh); broken != "" {
		t.Errorf("on the fresh host: %s", broken)
	}
}
