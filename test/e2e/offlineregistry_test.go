//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func fromRegistry(t *testing.T, master, worker machine, r *privateRegistry) {
	before := [2]string{master.settledWorld(t), worker.settledWorld(t)}
	watched := watch(t, []machine{master, worker}, strings.TrimSuffix(r.addr, ":5443"))
	pushed := pushInPieces(t, r)
	login := " --registry-username " + registryUser + " --registry-password-file /root/password --registry-ca /root/ca.crt "
	master.sh(t, "cat >/root/ca.crt <<'EOF'\n"+string(r.ca)+"EOF\nprintf %s "+registryPassword+" >/root/password")
	t.Run("refused", func(t *testing.T) { refusedRegistry(t, master, r, login) })
	bootstrapInPieces(t, master, r, loadHost+r.addr+"/k8s"+login)
	master.sh(t, "rm /root/ca.crt /root/password")
	r.stop() // a second run does not need the registry
	master.sh(t, "kube-bootstrap master")
	r.start(t)
	// The worker has no settings: the control plane sends it those of the registry.
	worker.sh(t, joinCommand(t, master))
	for _, m := range []machine{master, worker} {
		sameImages(t, m, r, pushed)
	}
	podsFrom(t, master, r, master, worker)
	pulledByDocker(t, master, r, pushed)
	keptSecret(t, master, worker)
	for _, m := range []machine{master, worker} {
		if out, err := m.try(t.Context(), "grep -E '(docker|ghcr|k8s).io' /var/lib/kubelet/config.json"); err == nil {
			t.Errorf("%s has the password under the name of another registry: %s", m.name, out)
		}
	}
	watched.none(t)
	master.sh(t, forgetRegistry(r))
	backToBare(t, before, master, worker)
}

// pushInPieces pushes to a registry that dies in the middle, as does the push
// itself, until all is there.
func pushInPieces(t *testing.T, r *privateRegistry) map[string]string {
	t.Helper()
	args := []string{built.binary, "offline", "push", r.addr + "/k8s", "--bundle", built.bundle, "--registry-ca", r.path("ca.crt"), "--registry-username", registryUser,
		"--registry-password-file", r.path("password"), "-o", "json", "--progress", "json"}
	ctx, cancel := context.WithCancel(t.Context())
	runUntil(t, ctx, args, "push", 10<<20, cancel) // SIGKILL
	cancel()
	out := runUntil(t, t.Context(), args, "push", 40<<20, func() {
		r.stop()
		r.start(t)
	})
	pushed := map[string]string{}
	for _, one := range items[struct{ Ref, Digest string }](t, out) {
		pushed[strings.TrimPrefix(one.Ref, r.addr+"/k8s/")] = one.Digest
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
			if json.Unmarshal(lines.Bytes(), &e) == nil && strings.HasPrefix(e.Message, what) && e.Bytes >= bytes && !done {
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
func bootstrapInPieces(t *testing.T, m machine, r *privateRegistry, run string) {
	t.Helper()
	m.sh(t, "timeout -s KILL 3 "+run+" || test $? = 137")
	runUntil(t, t.Context(), []string{"docker", "exec", m.name, "sh", "-c", run + " --progress json"}, "load", 20<<20, func() {
		r.stop()
		r.start(t)
	})
}

// refusedRegistry gives what cannot work to a bare host.
func refusedRegistry(t *testing.T, m machine, r *privateRegistry, login string) {
	before := m.settledWorld(t)
	plain := httptest.NewUnstartedServer(http.NotFoundHandler())
	plain.Listener.Close()
	var err error
	if plain.Listener, err = net.Listen("tcp", strings.TrimSuffix(r.addr, "5443")+"0"); err != nil {
		t.Fatal(err)
	}
	plain.Start()
	defer plain.Close()
	for _, c := range []struct{ name, run, problem string }{
		{"wrong password", r.addr + "/k8s --registry-username carrier --registry-ca /root/ca.crt --registry-password-file /root/ca.crt", "registry-login"},
		{"no password", r.addr + "/k8s --registry-ca /root/ca.crt", "registry-login"},
		{"unknown CA", r.addr + "/k8s", "registry-ca"},
		{"plain HTTP", plain.Listener.Addr().String() + "/k8s", "registry-plain-http"},
		{"no such host", "registry.nowhere:5443/k8s", "registry-host"},
		{"nobody there", m.ip + ":5081/k8s", "registry-unreachable"},
		{"nothing there", r.addr + "/other" + login, "registry-name"},
		{"no images", "", "images"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, says := m.ask(t, "", "offline bootstrap "+c.run, "")
			if names := problemNames(says); code != "3" || len(names) != 1 || names[0] != c.problem || strings.Contains(says, registryPassword) {
				t.Errorf("exit code %s, want 3 and %s:\n%s", code, c.problem, says)
			}
		})
	}
	m.sameWorld(t, "what was refused", before)
}

// sameImages checks that the registry has each image under the digest that push
// printed, and that containerd has this architecture's image with the same ID.
// Manifests differ, because the layers in the registry are compressed.
func sameImages(t *testing.T, m machine, r *privateRegistry, pushed map[string]string) {
	t.Helper()
	if len(pushed) < 5 {
		t.Errorf("pushed only %v", pushed)
	}
	// The IDs of images are in their manifests.
	has := m.sh(t, "ctr -n k8s.io images ls && ctr -n k8s.io images ls | awk 'NR > 1 {print $3}' | xargs -n 1 ctr -n k8s.io content get")
	for ref, want := range pushed {
		path, tag, _ := strings.Cut(ref, ":")
		text := r.get(t, "k8s/"+path+"/manifests/"+tag)
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
			must.NoError(t, json.Unmarshal(r.get(t, "k8s/"+path+"/manifests/"+d.Digest.String()), &one))
			return strings.Contains(has, one.Config.Digest.String())
		}) {
			t.Errorf("%s: containerd has another %s than the registry:\n%s", m.name, ref, has)
		}
	}
}

// pulledByDocker pulls each image as a host with only Docker would.
func pulledByDocker(t *testing.T, m machine, r *privateRegistry, pushed map[string]string) {
	t.Helper()
	for ref := range pushed {
		name := r.addr + "/k8s/" + ref
		m.sh(t, "docker pull -q --platform linux/"+runtime.GOARCH+" "+name+" && docker rmi "+name)
	}
}

// podsFrom starts pods whose images are nowhere but in the registry, by its
// own name and by that of an upstream.
func podsFrom(t *testing.T, master machine, r *privateRegistry, all ...machine) {
	t.Helper()
	master.sh(t, fmt.Sprintf(`mkdir -p /tmp/only && cp /usr/local/bin/probe /tmp/only/ && tar -C /tmp/only -c . | docker import - %[1]s/k8s/only:1 >/dev/null && rm -r /tmp/only &&
printf %%s %[2]s | docker login -u %[3]s --password-stdin %[1]s >/dev/null 2>&1 && docker push -q %[1]s/k8s/only:1`, r.addr, registryPassword, registryUser))
	for name, image := range map[string]string{"own": r.addr + "/k8s/only:1", "upstream": "registry.k8s.io/only:1"} {
		for _, on := range all {
			apply(t, master, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-%[2]s}, spec: {nodeName: %[2]s, tolerations: [{operator: Exists}],
  containers: [{name: probe, image: "%[3]s", imagePullPolicy: Always, command: [/probe, serve]}]}}`, name, on.name, image))
		}
	}
	for _, pod := range []string{"own-", "upstream-"} {
		for _, on := range all {
			podAddress(t, master, pod+on.name)
		}
	}
}

// forgetRegistry takes back what podsFrom did to Docker.
func forgetRegistry(r *privateRegistry) string {
	return "docker logout " + r.addr + " >/dev/null 2>&1; rm -rf /root/.docker; docker rmi -f " + r.addr + "/k8s/only:1 >/dev/null; "
}

// keptSecret expects the password only in files that root alone can read.
func keptSecret(t *testing.T, all ...machine) {
	t.Helper()
	for _, m := range all {
		out := m.sh(t, `b=$(printf %s `+registryUser+":"+registryPassword+` | base64)
find /etc /var/lib/kube-bootstrap /var/lib/kubelet/config.json /run -xdev -type f \( -perm /077 \) -exec grep -lE "`+registryPassword+`|$b" {} + 2>/dev/null || true`)
		if out != "" {
			t.Errorf("%s: the registry's password is in files that others may read:\n%s", m.name, out)
		}
	}
}
