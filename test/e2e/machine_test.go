//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// machine is a test host.
type machine struct {
	name, ip string
	key      string // file with the SSH key of a host that is no container
}

// command returns the arguments that run a shell script on the machine.
func (m machine) command(script string) []string {
	if m.key == "" {
		return []string{"docker", "exec", "-i", m.name, "sh", "-c", script}
	}
	return []string{
		"ssh", "-i", m.key, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
		"-o", "ConnectTimeout=60", "-o", "ServerAliveInterval=60", "root@" + m.ip, script,
	}
}

// try runs a shell script on the machine and returns its stdout.
func (m machine) try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{Args: m.command(script)}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

// sh is try that must succeed.
func (m machine) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := m.try(t.Context(), script)
	if err != nil {
		noteFailed(t.Name(), m.name, err)
		t.Fatalf("%s: %v\n%s", m.name, err, out)
	}
	return out
}

// kubectl calls the kubectl that a control plane gets.
func (m machine) kubectl(t *testing.T, args string) string {
	t.Helper()
	return m.sh(t, "kubectl "+args)
}

// items decodes a list that a command has printed as JSON.
func items[T any](t *testing.T, out string) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("not a list in JSON: %v\n%s", err, out)
	}
	return list.Items
}

// world prints everything on the machine that could have been changed.
func (m machine) world(t *testing.T) string {
	t.Helper()
	out, err := host.Command{
		Args:  m.command("exec sh"),
		Stdin: strings.NewReader(hosttest.WorldScript),
	}.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: print the world: %v", m.name, err)
	}
	return string(out)
}

// settledWorld is the world of a machine on which nothing changes any more, for a comparison: what
// has just been started or ended may still change it.
func (m machine) settledWorld(t *testing.T) (world string) {
	t.Helper()
	eventually(t, time.Minute, "nothing changes on "+m.name, func() error {
		world = m.world(t)
		time.Sleep(time.Second)
		if diff := hosttest.Diff(world, m.world(t)); len(diff) > 0 {
			return errors.New(strings.Join(diff[:min(len(diff), 80)], "\n"))
		}
		return nil
	})
	return world
}

// put copies a file to the machine.
func (m machine) put(t *testing.T, local, path string) {
	t.Helper()
	_, err := host.Command{
		Args:  m.command("mkdir -p " + filepath.Dir(path) + " && cat > " + path + ".new && chmod 755 " + path + ".new && mv " + path + ".new " + path),
		Stdin: bytes.NewReader(must.Read(t, local)),
	}.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: put %s: %v", m.name, path, err)
	}
}

// docker asks the engine that runs the machines.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := host.Command{Args: append([]string{"docker"}, args...)}.Run(t.Context())
	must.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// patience is how much longer than on an idle machine things may take: a limit
// costs time only where the test fails.
var patience time.Duration = 4

// eventually calls look until it returns nil; its last answer fails the test.
func eventually(t *testing.T, limit time.Duration, what string, look func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience * limit); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if err = look(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", what, patience*limit, err)
}

// soon runs a script on a machine or as a user until it succeeds.
func soon(t *testing.T, limit time.Duration, what string, on interface {
	try(ctx context.Context, script string) (string, error)
}, script string,
) {
	t.Helper()
	eventually(t, limit, what, func() error { _, err := on.try(t.Context(), script); return err })
}

// says waits until a script prints want. Its first answers may come from before an effect that
// the cluster has only later: the rules of Services, or a program that has just started.
func says(t *testing.T, limit time.Duration, what string, m machine, script, want string) {
	t.Helper()
	eventually(t, limit, what, func() error {
		out, err := m.try(t.Context(), script)
		if err == nil && out != want {
			err = fmt.Errorf("got %q, want %q", out, want)
		}
		return err
	})
}

// settles is how long the rest of a process or of a network namespace may stay
// that ends by itself. The kernel keeps a namespace, with its links, while a cut
// connection in it still waits for an answer: 102 s by default (tcp_orphan_retries).
const settles = 4 * time.Minute

// sameWorld fails the test if the machine is not as it was.
func (m machine) sameWorld(t *testing.T, what, before string) {
	t.Helper()
	var diff []string
	for end := time.Now().Add(settles); ; time.Sleep(time.Second) {
		diff = hosttest.Diff(before, m.world(t))
		if len(diff) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	t.Errorf("%s: %s changed the machine:\n%s", m.name, what, strings.Join(diff[:min(len(diff), 80)], "\n"))
	links, _ := m.try(t.Context(), "ip -o link show type veth; lsns -t net; dmesg | grep unregister_netdevice | tail -n 5")
	t.Logf("links and network namespaces of %s:\n%s", m.name, links)
}
