//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
)

func fromRegistry(t *testing.T, master, worker hosts.Machine, r *registries.Private) {
	before := [2]string{master.SettledWorld(t), worker.SettledWorld(t)}
	watched := clusters.Watch(t, []hosts.Machine{master, worker}, strings.TrimSuffix(r.Addr, ":5443"))
	pushed := pushInPieces(t, r)
	login := " --registry-username " + registries.PrivateUser +
		" --registry-password-file /root/password --registry-ca /root/ca.crt "
	master.Sh(t, "cat >/root/ca.crt <<'EOF'\n"+string(r.CA)+"EOF\nprintf %s "+registries.PrivatePassword+
		" >/root/password")
	t.Run("refused", func(t *testing.T) { refusedRegistry(t, master, r, login) })
	bootstrapInPieces(t, master, r, clusters.LoadHost+r.Addr+"/k8s"+login)
	master.Sh(t, "rm /root/ca.crt /root/password")
	r.Stop() // a second run does not need the registry
	master.Sh(t, "kube-bootstrap master")
	r.Start(t)
	// The worker has no settings: the control plane sends it those of the registry.
	worker.Sh(t, clusters.JoinCommand(t, master))
	for _, m := range []hosts.Machine{master, worker} {
		sameImages(t, m, r, pushed)
	}
	registries.PodsFrom(t, master, r, master, worker)
	pulledByDocker(t, master, r, pushed)
	registries.KeptSecret(t, master, worker)
	for _, m := range []hosts.Machine{master, worker} {
		if out, err := m.Try(t.Context(), "grep -E '(docker|ghcr|k8s).io' /var/lib/kubelet/config.json"); err == nil {
			t.Errorf("%s has the password under the name of another registry: %s", m.Name, out)
		}
	}
	watched.None(t)
	master.Sh(t, registries.ForgetRegistry(r))
	clusters.BackToBare(t, before, master, worker)
}

// pushInPieces pushes to a registry that dies in the middle, as does the push
// itself, until all is there.
func pushInPieces(t *testing.T, r *registries.Private) map[string]string {
	t.Helper()
	args := []string{hosts.Built.Binary, "offline", "push", r.Addr + "/k8s", "--bundle", hosts.Built.Bundle,
		"--registry-ca", r.Path("ca.crt"), "--registry-username", registries.PrivateUser,
		"--registry-password-file", r.Path("password"), "-o", "json", "--progress", "json"}
	ctx, cancel := context.WithCancel(t.Context())
	runUntil(t, ctx, args, "push", 10<<20, cancel) // SIGKILL
	cancel()
	out := runUntil(t, t.Context(), args, "push", 40<<20, func() {
		r.Stop()
		r.Start(t)
	})
	pushed := map[string]string{}
	for _, one := range hosts.Items[struct{ Ref, Digest string }](t, out) {
		pushed[strings.TrimPrefix(one.Ref, r.Addr+"/k8s/")] = one.Digest
	}
	return pushed
}

// runUntil runs the program with JSON progress, and calls then once, as soon as
// a message that begins with what has reached that many bytes. It returns the
// output of the program.
func runUntil(t *testing.T, ctx context.Context, args []string, what string, bytes int64, then func()) string {
	t.Helper()
	events, progress := io.Pipe()
	seen, last := make(chan struct{}), ""
	go func() {
		defer close(seen)
		done := false
		for lines := bufio.NewScanner(events); lines.Scan(); {
			var e struct {
				Message string
				Bytes   int64
			}
			last = lines.Text()
			if json.Unmarshal(lines.Bytes(), &e) == nil && strings.HasPrefix(e.Message, what) && e.Bytes >= bytes &&
				!done {
				done = true
				then()
			}
		}
		if !done {
			t.Errorf("%q never got as far as %d bytes", args, bytes)
		}
	}()
	out, err := host.Command{Args: args, Stderr: progress}.Run(ctx)
	progress.Close()
	<-seen
	if err != nil && ctx.Err() == nil {
		t.Fatalf("%v\n%s", err, last)
	}
	return string(out)
}

// bootstrapInPieces is cut short at the first bytes, and then has the registry
// go away and come back.
func bootstrapInPieces(t *testing.T, m hosts.Machine, r *registries.Private, run string) {
	t.Helper()
	m.Sh(t, "timeout -s KILL 3 "+run+" || test $? = 137")
	runUntil(t, t.Context(), []string{"docker", "exec", m.Name, "sh", "-c", run + " --progress json"}, "load", 20<<20,
		func() {
			r.Stop()
			r.Start(t)
		})
}

// refusedRegistry gives what cannot work to a bare host.
func refusedRegistry(t *testing.T, m hosts.Machine, r *registries.Private, login string) {
	before := m.SettledWorld(t)
	plain := httptest.NewUnstartedServer(http.NotFoundHandler())
	plain.Listener.Close()
	var err error
	if plain.Listener, err = net.Listen("tcp", strings.TrimSuffix(r.Addr, "5443")+"0"); err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer plain.Close()
	for _, c := range []struct{ name, Local, problem string }{
		{
			"wrong password", r.Addr + "/k8s --registry-username carrier --registry-ca /root/ca.crt " +
				"--registry-password-file /root/ca.crt", "registry-login",
		},
		{"no password", r.Addr + "/k8s --registry-ca /root/ca.crt", "registry-login"},
		{"unknown CA", r.Addr + "/k8s", "registry-ca"},
		{"plain HTTP", plain.Listener.Addr().String() + "/k8s", "registry-plain-http"},
		{"no such host", "registry.nowhere:5443/k8s", "registry-host"},
		{"nobody there", m.IP + ":5081/k8s", "registry-unreachable"},
		{"nothing there", r.Addr + "/other" + login, "registry-name"},
		{"no images", "", "images"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, says := m.Ask(t, "", "offline bootstrap "+c.Local, "")
			if names := hosts.ProblemNames(says); code != "3" || len(names) != 1 || names[0] != c.problem ||
				strings.Contains(says, registries.PrivatePassword) {
				t.Errorf("exit code %s, want 3 and %s:\n%s", code, c.problem, says)
			}
		})
	}
	m.SameWorld(t, "what was refused", before)
}

// sameImages checks that the registry has each image under the digest that push
// printed, and that containerd has this architecture's image with the same ID.
// Manifests differ, because the layers in the registry are compressed.
func sameImages(t *testing.T, m hosts.Machine, r *registries.Private, pushed map[string]string) {
	t.Helper()
	if len(pushed) < 5 {
		t.Errorf("pushed only %v", pushed)
	}
	// The IDs of images are in their manifests.
	has := m.Sh(t, "ctr -n k8s.io images ls && ctr -n k8s.io images ls | awk 'NR > 1 {print $3}' | "+
		"xargs -n 1 ctr -n k8s.io content get")
	for ref, want := range pushed {
		path, tag, _ := strings.Cut(ref, ":")
		text := r.Get(t, "k8s/"+path+"/manifests/"+tag)
		if got := digest.FromBytes(text).String(); got != want {
			t.Errorf("%s is %s in the registry, and push said %s", ref, got, want)
		}
		if !strings.Contains(has, "/"+ref+" ") {
			continue // not an image of pods
		}
		var index ocispec.Index
		must.NoError(t, json.Unmarshal(text, &index))
		if !slices.ContainsFunc(index.Manifests, func(d ocispec.Descriptor) bool {
			var one ocispec.Manifest
			must.NoError(t, json.Unmarshal(r.Get(t, "k8s/"+path+"/manifests/"+d.Digest.String()), &one))
			return strings.Contains(has, one.Config.Digest.String())
		}) {
			t.Errorf("%s: containerd has another %s than the registry:\n%s", m.Name, ref, has)
		}
	}
}

// pulledByDocker pulls each image as a host with only Docker would.
func pulledByDocker(t *testing.T, m hosts.Machine, r *registries.Private, pushed map[string]string) {
	t.Helper()
	for ref := range pushed {
		name := r.Addr + "/k8s/" + ref
		m.Sh(t, "docker pull -q --platform linux/"+runtime.GOARCH+" "+name+" && docker rmi "+name)
	}
}
