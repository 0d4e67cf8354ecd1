//go:build e2e

package long

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// scheduled is a cluster of three control planes that make backups.
type scheduled struct {
	all       []hosts.Machine
	recipient string
}

// TestBackupSchedule stops the control plane that makes the backups. Another control plane makes the next backup.
func TestBackupSchedule(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	must.NoError(t, err)
	c := scheduled{
		all:       hosts.New(t, "docker-28.5", "10.193.62.0/24", "e2e-schedule-a", "e2e-schedule-b", "e2e-schedule-c"),
		recipient: id.Recipient().String(),
	}
	c.all[0].Sh(t, "kube-bootstrap master --bundle "+hosts.Bundle)
	for _, m := range c.all[1:] {
		m.Sh(t, clusters.NewToken(t, c.all[0], "--control-plane").ControlPlaneLine())
	}
	t.Run("a missing directory is named", func(t *testing.T) { c.fails(t, "/mnt/missing", "backup-place") })
	t.Run("a full disk is named", c.fullDisk)
	t.Run("the next control plane goes on", c.goesOn)
}

// schedule replaces the schedule. Each makes a backup at once.
func (c scheduled) schedule(t *testing.T, to string) {
	t.Helper()
	c.all[1].Sh(t, "kube-bootstrap backup schedule --every 1m --keep 2 --to "+to+" --recipient "+c.recipient)
}

// statusOf returns the state of the backups as a control plane shows it.
func (c scheduled) statusOf(t *testing.T, m hosts.Machine) recovery.BackupStatus {
	t.Helper()
	var status struct{ Backups recovery.BackupStatus }
	out := m.Sh(t, "kube-bootstrap status -o json || [ $? = 5 ]")
	must.NoError(t, json.Unmarshal([]byte(out), &status))
	return status.Backups
}

// fails expects that each control plane names the problem.
func (c scheduled) fails(t *testing.T, to, want string) {
	t.Helper()
	c.schedule(t, to)
	for _, m := range c.all {
		wait.Until(t, 2*time.Minute, want+" on "+m.Name, func() error {
			for _, p := range c.statusOf(t, m).Problems {
				if p.Name == want && p.Remedy != "" {
					return nil
				}
			}
			return fmt.Errorf("the problems are %v", c.statusOf(t, m).Problems)
		})
	}
}

func (c scheduled) fullDisk(t *testing.T) {
	for _, m := range c.all {
		m.Sh(t, "mkdir -p /mnt/full && mount -t tmpfs -o size=64k tmpfs /mnt/full")
	}
	c.fails(t, "/mnt/full", "backup-full")
}

func (c scheduled) goesOn(t *testing.T) {
	for _, m := range c.all {
		m.Sh(t, "mkdir -p /mnt/good")
	}
	c.schedule(t, "/mnt/good")
	before := c.awaitBackup(t, c.all[1], "")
	holder := slices.IndexFunc(c.all, func(m hosts.Machine) bool { return m.Name == before })
	hosts.Power(t, "kill", c.all[holder])
	began, other := time.Now(), c.all[(holder+1)%len(c.all)]
	after := c.awaitBackup(t, other, before)
	t.Logf("%s makes the next backup %s after the end of %s", after, time.Since(began).Round(time.Second), before)
	for _, p := range c.statusOf(t, other).Problems {
		t.Errorf("after the next backup: %v", p)
	}
	if out := other.Sh(t, "kube-bootstrap status || [ $? = 5 ]"); !strings.Contains(out, "last good backup") {
		t.Errorf("status prints\n%s", out)
	}
}

// awaitBackup returns the control plane that has made a good backup, which is not the given one.
func (c scheduled) awaitBackup(t *testing.T, m hosts.Machine, not string) (host string) {
	t.Helper()
	wait.Until(t, 5*time.Minute, "a backup", func() error {
		status := c.statusOf(t, m)
		if status.Last == nil || status.Last.Host == not {
			return fmt.Errorf("the state is %+v", status)
		}
		host = status.Last.Host
		return nil
	})
	return host
}
