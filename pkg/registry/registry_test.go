package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// serve runs a registry without TLS behind between, which may spoil things.
func serve(t *testing.T, between func(http.Handler) http.Handler) *Registry {
	t.Helper()
	server := httptest.NewServer(between(registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	t.Cleanup(server.Close)
	return &Registry{Address: strings.TrimPrefix(server.URL, "http://") + "/k8s", Insecure: true, PlainHTTP: true}
}

func upload(t *testing.T, r *Registry, path string, data []byte) digest.Digest {
	t.Helper()
	options, err := r.Options(t.Context())
	must.NoError(t, err)
	repo, err := r.Repository(path)
	must.NoError(t, err)
	must.NoError(t, remote.WriteLayer(repo, static.NewLayer(data, types.OCIUncompressedLayer), options...))
	return digest.FromBytes(data)
}

// TestBusyRegistryIsWaitedFor: it asks once for patience, of every kind of
// request.
func TestBusyRegistryIsWaitedFor(t *testing.T) {
	var refused atomic.Int32
	asked := map[string]bool{}
	r := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if kind := request.Method; !asked[kind] {
				asked[kind] = true
				refused.Add(1)
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, request)
		})
	})
	upload(t, r, "coredns/coredns", []byte("a layer"))
	if refused.Load() < 3 {
		t.Errorf("only %d requests were refused: %v", refused.Load(), asked)
	}
}

// TestBlobGoesOnWhereItWasCutOff: every connection ends after a few bytes.
func TestBlobGoesOnWhereItWasCutOff(t *testing.T) {
	const piece = 100 << 10
	var begun atomic.Int32
	r := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Method != http.MethodGet || !strings.Contains(request.URL.Path, "/blobs/sha256") {
				h.ServeHTTP(w, request)
				return
			}
			begun.Add(1)
			all, ranged := httptest.NewRecorder(), httptest.NewRecorder()
			whole := request.Clone(request.Context())
			whole.Header.Del("Range")
			h.ServeHTTP(all, whole)
			http.ServeContent(ranged, request, "", time.Time{}, bytes.NewReader(all.Body.Bytes()))
			for name, values := range ranged.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(ranged.Code)
			_, _ = w.Write(ranged.Body.Bytes()[:min(piece, ranged.Body.Len())])
			panic(http.ErrAbortHandler)
		})
	})
	data := make([]byte, 3*piece)
	_, _ = rand.Read(data)
	d := upload(t, r, "pause", data)
	reader, err := r.Reader()
	must.NoError(t, err)
	blob := reader.Blob(t.Context(), "pause", d, int64(len(data)))
	defer blob.Close()
	got, err := io.ReadAll(blob)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d of %d bytes: %v", len(got), len(data), err)
	}
	if begun.Load() < 3 {
		t.Errorf("came in %d pieces", begun.Load())
	}
}

// TestReaderOfManyRepositories: its memory has a limit.
func TestReaderOfManyRepositories(t *testing.T) {
	r := serve(t, func(h http.Handler) http.Handler { return h })
	reader, err := r.Reader()
	must.NoError(t, err)
	for i := range 3 * maxClients {
		repo, err := r.Repository(fmt.Sprint("repository", i))
		must.NoError(t, err)
		_, err = reader.client(t.Context(), repo)
		must.NoError(t, err)
	}
	if n := len(reader.clients); n > maxClients {
		t.Errorf("it keeps %d clients", n)
	}
}

func TestMissingBlobIsNotWaitedFor(t *testing.T) {
	r := serve(t, func(h http.Handler) http.Handler { return h })
	reader, err := r.Reader()
	must.NoError(t, err)
	_, err = io.ReadAll(reader.Blob(t.Context(), "pause", digest.FromString("nothing"), 1))
	if problems := step.Problems(err); len(problems) != 1 || problems[0].Name != "registry-name" {
		t.Errorf("got %v", err)
	}
}

// TestPlainHTTPIsRefused: a private address is no reason to show a password to
// everybody on the way.
func TestPlainHTTPIsRefused(t *testing.T) {
	var asked atomic.Bool
	r := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if request.Header.Get("Authorization") != "" {
				asked.Store(true)
			}
			h.ServeHTTP(w, request)
		})
	})
	r.Insecure, r.PlainHTTP, r.Auth.Username, r.Auth.Password = false, false, "me", "secret"
	problems := step.Problems(r.Check(t.Context(), "pause", true))
	if len(problems) != 1 || problems[0].Name != "registry-plain-http" || asked.Load() {
		t.Errorf("got %v, the password was shown: %v", problems, asked.Load())
	}
	r.Insecure = true
	if err := r.Check(t.Context(), "pause", true); err != nil || !r.PlainHTTP || !asked.Load() {
		t.Errorf("with --insecure: %v, plain %v", err, r.PlainHTTP)
	}
}

// TestTokenServerNearby: the registry wants a token of a server at another
// private address, which alone is shown the password.
func TestTokenServerNearby(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, password, _ := request.BasicAuth(); password != "secret" || request.URL.Path != "/auth" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"token": "let me in"}`)
	}))
	defer tokens.Close()
	var shown atomic.Bool
	r := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			said := request.Header.Get("Authorization")
			if strings.HasPrefix(said, "Basic") {
				shown.Store(true)
			}
			if said != "Bearer let me in" {
				w.Header().Set("WWW-Authenticate", `Bearer realm="`+tokens.URL+`/auth",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, request)
		})
	})
	r.Auth.Username, r.Auth.Password = "me", "wrong"
	if problems := step.Problems(r.Check(t.Context(), "pause", true)); len(problems) != 1 ||
		problems[0].Name != "registry-login" {
		t.Errorf("with a wrong password: %v", problems)
	}
	r.Auth.Password = "secret"
	if err := r.Check(t.Context(), "pause", true); err != nil {
		t.Error(err)
	}
	upload(t, r, "pause", []byte("a layer"))
	if shown.Load() {
		t.Error("the registry was shown the password")
	}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	must.NoError(t, os.WriteFile(text, []byte("no certificate"), 0o600))
	for want, s := range map[string]config.RegistrySettings{
		"registry.ca: " + dir + "/none: must be a file": {CA: dir + "/none"},
		"registry.ca: contains no PEM certificate":      {CA: text},
		"registry.cert and registry.key: must be":       {Cert: text, Key: text},
	} {
		s.Address, s.Token = "registry.example.com:5000/k8s", "t"
		if _, err := New(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestCredentialsOfDocker(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	const docker = `{"auths": {"registry.example.com:5000": {"auth": "bWU6c2VjcmV0"}}}`
	must.NoError(t, os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), []byte(docker), 0o600))
	r, err := New(t.Context(), config.RegistrySettings{Address: "registry.example.com:5000/k8s"})
	if err != nil || r.Auth.Username != "me" || r.Auth.Password != "secret" ||
		r.Authorization() != "Basic bWU6c2VjcmV0" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestHandedOn(t *testing.T) {
	r := &Registry{Address: "registry.example.com/k8s", CA: []byte("pem"), Insecure: true}
	r.Auth.Username, r.Auth.Password = "me", "secret"
	data, err := r.Marshal()
	must.NoError(t, err)
	back, err := Parse(data)
	if err != nil || back.Authorization() != r.Authorization() || back.Address != r.Address ||
		!bytes.Equal(back.CA, r.CA) {
		t.Errorf("%+v %v", back, err)
	}
	again := &Registry{Address: r.Address}
	again.Complete(back)
	if again.Authorization() != r.Authorization() || !bytes.Equal(again.CA, r.CA) {
		t.Errorf("named again: %+v", again)
	}
	other := &Registry{Address: "registry.example.org/k8s"}
	other.Complete(back)
	if other.Auth.Password != "" {
		t.Error("another registry gets the password of the first")
	}
	var none *Registry
	if data, err := none.Marshal(); err != nil || data != nil {
		t.Errorf("no registry: %q %v", data, err)
	}
	if r, err := Parse(nil); err != nil || r != nil {
		t.Errorf("from nothing: %v %v", r, err)
	}
}

func TestLayContract(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	must.NoError(t, os.MkdirAll(files.Path("/etc/containerd/certs.d/ghcr.io"), 0o755))
	const owners = "/etc/containerd/certs.d/ghcr.io/hosts.toml"
	must.NoError(t, os.WriteFile(files.Path(owners), []byte("the owner's"), 0o640))
	tree := []host.File{{Path: owners, Data: []byte("ours")},
		{Path: "/etc/containerd/certs.d/reg:5000/ca.crt", Data: []byte("ca"), Mode: 0o644}}
	wanted := tree
	configure := ConfigureHost(files, func() ([]host.File, error) { return wanted, nil })
	hosttest.Contract(t, func() string { return world(t, files) }, configure)

	must.NoError(t, configure.Apply(t.Context()))
	wanted = tree[1:]
	if diff, err := configure.Check(t.Context()); err != nil || diff.String() != "restore "+owners {
		t.Errorf("no longer wanted: %v %v", diff, err)
	}
	must.NoError(t, configure.Apply(t.Context()))
	if text, err := files.Read(owners); err != nil || string(text) != "the owner's" {
		t.Errorf("restored: %q %v", text, err)
	}
}

// TestAFileOfTheUserKeepsItsMode: the run must not report it as different after it was written.
func TestAFileOfTheUserKeepsItsMode(t *testing.T) {
	const path = "/etc/docker/certs.d/reg:5000/ca.crt"
	for _, mode := range []os.FileMode{0o600, 0o640, 0o444} {
		files := host.Files{Root: t.TempDir()}
		must.NoError(t, os.MkdirAll(files.Path("/etc/docker/certs.d/reg:5000"), 0o755))
		must.NoError(t, os.WriteFile(files.Path(path), []byte("the user's"), mode))
		configure := ConfigureHost(files, func() ([]host.File, error) {
			return []host.File{{Path: path, Data: []byte("ours"), Mode: 0o644}}, nil
		})
		hosttest.Contract(t, func() string { return world(t, files) }, configure)
		must.NoError(t, configure.Apply(t.Context()))
		info, err := os.Stat(files.Path(path))
		if text, _ := files.Read(path); err != nil || info.Mode().Perm() != mode || string(text) != "ours" {
			t.Errorf("%o: the file is %q of mode %s", mode, text, info.Mode())
		}
	}
}

// world prints what is on the host outside of our own memory.
func world(t *testing.T, files host.Files) string {
	t.Helper()
	out, err := host.Run(context.Background(), "sh", "-c",
		"cd "+files.Path("/")+" && find etc -printf '%p %m\\n' | sort; find etc -type f | sort | xargs -r sha256sum")
	must.NoError(t, err)
	return out
}
