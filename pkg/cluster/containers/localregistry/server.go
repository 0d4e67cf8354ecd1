// Package localregistry is the registry of a cluster of containers. It stores pushed images, and
// keeps the images that nodes pull from other registries through it.
//
//	docker push localhost:5000/my/app:dev ──▶ ┌────────┐
//	node: localhost:5000/my/app:dev       ──▶ │ Server │ ──▶ store: blobs by digest, tags by registry and repository
//	node: docker.io/library/busybox       ──▶ └────────┘ ──▶ upstream: what the store does not have
//
// containerd names the registry that it wants in the parameter ns of each
// request, so that one address serves all of them.
//
// Tried and rejected:
//
//   - The proxy mode of github.com/distribution/distribution/v3: it does not start
//     while its upstream is unreachable, serves one upstream per instance, and
//     ignores the path of an upstream such as mirror.example.com/hub. Linked into
//     this program, it adds 2.3 MB and a client of Redis.
//   - The registry of go-containerregistry: it keeps uploads and manifests in
//     memory only, and refuses an index of which one platform was pulled.
package localregistry

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// Upstreams are the registries whose images pass through the registry of each cluster.
var Upstreams = []string{"docker.io", "registry.k8s.io", "quay.io", "ghcr.io"}

// Port is the port of the registry in its container.
const Port = 5000

// Dir is the directory of the images in the container.
const Dir = "/registry"

// Name returns the name of the registry in references, by the port of the engine's machine.
func Name(port int) string { return fmt.Sprintf("localhost:%d", port) }

// Through returns the mirrors with which the nodes of a cluster pull through its
// registry at addr, which the engine's machine reaches by port. own are the
// mirrors from which the registry itself pulls.
func Through(addr string, port int, own []mirror.Mirror) (all []mirror.Mirror) {
	names := append([]string{Name(port)}, Upstreams...)
	for _, m := range own {
		if !slices.Contains(names, m.Of) {
			names = append(names, m.Of)
		}
	}
	for _, name := range names {
		all = append(all, mirror.Mirror{Of: name, Host: fmt.Sprintf("%s:%d", addr, Port), Plain: true})
	}
	return all
}

// ServerSettings describe a registry.
type ServerSettings struct {
	Name    string // in the names of images: "localhost:5000"
	Dir     string // of the images
	Mirrors []mirror.Mirror
	Cache   int64        // limit for the images of other registries in bytes
	Log     func(string) // gets a line about what an administrator should know; may be nil
}

// Server is the registry.
type Server struct {
	name      string
	store     *store
	upstreams map[string]*upstream // by the name of the registry
	clients   clients.Limits
	log       func(string)
	noted     atomic.Int64 // when note has logged last, in seconds
	parsing   sync.Mutex   // of manifests
	cleaning  sync.Mutex   // of abandoned uploads
}

// New returns the registry. Its upstreams are Upstreams and the registries of the mirrors.
func New(o ServerSettings) (*Server, error) {
	kept, err := openStore(o.Dir, o.Cache)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	mirrors := slices.Clone(o.Mirrors)
	for _, name := range Upstreams {
		mirrors = append(mirrors, mirror.Mirror{Of: name, Host: name})
	}
	s := &Server{name: o.Name, store: kept, upstreams: map[string]*upstream{}, clients: nodes, log: o.Log}
	for _, m := range mirrors {
		if s.upstreams[m.Of] != nil {
			continue // a mirror of the user comes before the registry itself
		}
		if s.upstreams[m.Of], err = newUpstream(m); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Serve answers requests on addr until ctx ends.
func (s *Server) Serve(ctx context.Context, addr string) error {
	return registry.ServeImages(ctx, addr, s.clients.Server(s))
}

// target is what a request is about.
type target struct {
	upstream   *upstream // nil: pushed images
	registry   string    // directory of the tags: the name of the upstream, or "local"
	repository string
	kind       string // "manifests", "blobs", "tags" or "uploads"
	reference  string // tag, digest or ID of an upload
}

var (
	paths        = regexp.MustCompile(`^/v2/(.+?)/(manifests|blobs/uploads|blobs|tags)/([^/]*)$`)
	repositories = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
)

const (
	ownRegistry   = "local"
	maxRepository = 255 // as other registries have it; a name of a file may not be longer
)

// parse returns the target of a request. Without the parameter ns, or with the
// name of the registry itself in it, the request is about pushed images.
func (s *Server) parse(r *http.Request) (t target, ok bool) {
	found := paths.FindStringSubmatch(r.URL.Path)
	if found == nil || len(found[1]) > maxRepository || !repositories.MatchString(found[1]) {
		return t, false
	}
	t = target{
		registry: ownRegistry, repository: found[1], kind: strings.TrimPrefix(found[2], "blobs/"), reference: found[3],
	}
	from := r.URL.Query().Get("ns")
	if t.upstream = s.upstreams[from]; t.upstream != nil {
		t.registry = from
		return t, true
	}
	return t, from == "" || from == s.name
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w, r, end := s.clients.Request(w, r)
	defer end()
	if fromBrowser(r) {
		refuse(w, http.StatusForbidden, "DENIED", "this registry does not serve web pages")
		return
	}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	if r.URL.Path == "/v2/" || r.URL.Path == "/v2" {
		w.WriteHeader(http.StatusOK)
		return
	}
	t, ok := s.parse(r)
	if !ok {
		refuse(w, http.StatusNotFound, "NAME_UNKNOWN", "there is no such repository")
		return
	}
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case t.kind == "manifests" && reading:
		s.getManifest(w, r, t)
	case t.kind == "blobs" && reading:
		s.getBlob(w, r, t)
	case t.kind == "tags" && t.reference == "list" && reading:
		s.listTags(w, t)
	case t.upstream != nil:
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "images of other registries are read-only")
	case t.kind == "manifests" && r.Method == http.MethodPut:
		s.putManifest(w, r, t)
	case t.kind == "uploads":
		s.upload(w, r, t)
	default:
		refuse(w, http.StatusMethodNotAllowed, "UNSUPPORTED", "this registry does not support "+r.Method+" here")
	}
}

// fromBrowser reports whether a browser sent a request. A web page whose host
// name resolves to 127.0.0.1 could otherwise push an image that the cluster runs.
func fromBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}
