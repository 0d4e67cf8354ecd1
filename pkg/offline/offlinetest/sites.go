// Package offlinetest provides the official registries and download sites for tests: their
// contents are tiny, and have the official names and shapes.
package offlinetest

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs/rootfstest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// OfficialServer is a server with an authority of its own that has everything official.
type OfficialServer struct {
	*httptest.Server
	caFile string
	files  map[string][]byte

	mu    sync.Mutex
	asked []string
}

// Start serves the images and files of these versions for an architecture.
func Start(t testing.TB, v image.Versions, arch string) *OfficialServer {
	t.Helper()
	s := &OfficialServer{files: map[string][]byte{}}
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(images, w, r)
	}))
	t.Cleanup(s.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	s.caFile = must.Write(t, filepath.Join(t.TempDir(), "ca.crt"), authority)
	for _, o := range image.Origins(v, image.Published(v, arch), image.OfficialSites, arch) {
		s.add(t, o)
	}
	return s
}

// Settings returns settings with which everything is pulled from the sites.
func (s *OfficialServer) Settings() config.Config {
	c := config.Default()
	for _, of := range image.Registries {
		c.RegistryMirrors = append(c.RegistryMirrors, mirror.Mirror{Of: of, Host: s.host()})
	}
	files := url.URL{Scheme: "https", Host: s.host(), Path: "/files"}
	c.DownloadMirror, c.CNIMirror, c.CAFile = files, files, s.caFile
	return c
}

// Asked returns how many requests, such as "GET /v2/pause/manifests/3.10", contain a part.
func (s *OfficialServer) Asked(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.asked {
		if strings.Contains(p, part) {
			n++
		}
	}
	return n
}

func (s *OfficialServer) host() string { return strings.TrimPrefix(s.URL, "https://") }

func (s *OfficialServer) serve(images http.Handler, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	file, isFile := strings.CutPrefix(r.URL.Path, "/files/")
	data, ok := s.files[file]
	switch {
	case !isFile:
		images.ServeHTTP(w, r)
	case !ok:
		http.NotFound(w, r)
	default:
		_, _ = w.Write(data)
	}
}

func (s *OfficialServer) add(t testing.TB, o image.OfficialSource) {
	t.Helper()
	if o.Ref != "" {
		s.push(t, o)
		return
	}
	data := []byte("#!/bin/sh\nexit 0 # " + o.Name + "\n")
	if strings.HasSuffix(o.URL, ".tgz") {
		var plugins []string
		for _, p := range image.CNIPlugins {
			plugins = append(plugins, "./"+p+"=plugin "+p)
		}
		data = rootfstest.Gzip(t, rootfstest.Tar(t, plugins...))
	}
	for _, site := range []string{image.OfficialSites.Kubernetes, image.OfficialSites.CNI} {
		if name, ok := strings.CutPrefix(o.URL, site+"/"); ok {
			sum := sha512.Sum512(data)
			s.files[name], s.files[name+".sha512"] = data, []byte(hex.EncodeToString(sum[:]))
		}
	}
}

func (s *OfficialServer) push(t testing.TB, o image.OfficialSource) {
	t.Helper()
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		plain := rootfstest.Tar(t, "usr/", "usr/local/", "usr/local/bin/",
			path.Join("usr/local/bin", o.Name)+"=program "+o.Name)
		return io.NopCloser(strings.NewReader(string(plain))), nil
	})
	must.NoError(t, err)
	img, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		OS: "linux", Architecture: o.Arch, RootFS: v1.RootFS{Type: "layers"},
	})
	must.NoError(t, err)
	img, err = mutate.AppendLayers(img, layer)
	must.NoError(t, err)
	official, err := name.ParseReference(o.Ref)
	must.NoError(t, err)
	at, err := name.ParseReference(s.host() + "/" + official.Context().RepositoryStr() + ":" + official.Identifier())
	must.NoError(t, err)
	must.NoError(t, remote.Write(at, img, remote.WithTransport(s.Client().Transport)))
}
