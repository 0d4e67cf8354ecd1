package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Served lists the images that a host serves from the content store of its containerd.
type Served struct {
	Listen  string             `json:"listen"`  // address:port
	Content string             `json:"content"` // directory of the content store
	Images  map[string]v1.Hash `json:"images"`  // manifest digest by image name
}

// Serve runs a read-only registry until ctx ends.
func Serve(ctx context.Context, s Served) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	return ServeImages(ctx, s.Listen, &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute})
}

// ServeImages runs a server on addr until ctx ends, with TLS if it is configured.
func ServeImages(ctx context.Context, addr string, server *http.Server) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("serve images: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	serve := server.Serve
	if server.TLSConfig != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve images: %w", err)
	}
	return nil
}

// handler reads the manifests once; its result reads all other blobs on request.
func (s Served) handler() (http.Handler, error) {
	blobs := filepath.Join(s.Content, "blobs")
	all := ggcr.New(ggcr.WithBlobHandler(ggcr.NewDiskBlobHandler(blobs)), ggcr.Logger(log.New(io.Discard, "", 0)))
	for ref, digest := range s.Images {
		tag, err := name.NewTag(ref)
		if err != nil {
			return nil, err
		}
		manifest, err := os.ReadFile(filepath.Join(blobs, digest.Algorithm, digest.Hex))
		if err != nil {
			return nil, fmt.Errorf("manifest of %s: %w", ref, err)
		}
		path := "/v2/" + tag.RepositoryStr() + "/manifests/" + tag.TagStr()
		put, err := http.NewRequest(http.MethodPut, path, bytes.NewReader(manifest)) //nolint:noctx // nothing is sent
		if err != nil {
			return nil, err
		}
		put.Header.Set("Content-Type", string(types.OCIManifestSchema1))
		var answer status
		all.ServeHTTP(&answer, put)
		if answer.code != http.StatusCreated {
			return nil, fmt.Errorf("manifest of %s: %s", ref, strings.TrimSpace(answer.text.String()))
		}
	}
	return onlyReading(all), nil
}

func onlyReading(all http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
			return
		}
		all.ServeHTTP(w, r)
	})
}

// status is the answer to a request that is handled inside this process.
type status struct {
	code int
	text bytes.Buffer
}

func (s *status) Header() http.Header         { return http.Header{} }
func (s *status) WriteHeader(code int)        { s.code = code }
func (s *status) Write(p []byte) (int, error) { return s.text.Write(p) }
