package localregistry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// store keeps blobs and manifests by their digests, and a file per tag with the digest.
type store struct {
	pushed content.Store // what clients have pushed; nothing removes it
	cache  *cache        // what other registries serve
	files  host.Files
}

const tagsDir = "/tags"

func openStore(dir string, limit int64) (*store, error) {
	pushed, err := openContent(filepath.Join(dir, "content"))
	if err != nil {
		return nil, err
	}
	cached, err := openCache(filepath.Join(dir, "mirrored"), limit)
	return &store{pushed, cached, host.Files{Root: dir}}, err
}

// openContent removes what a killed process had not finished, unless the disk is read-only.
func openContent(root string) (content.Store, error) {
	unfinished := filepath.Join(root, "ingest")
	left, _ := os.ReadDir(unfinished)
	for _, one := range left {
		_ = os.RemoveAll(filepath.Join(unfinished, one.Name()))
	}
	// containerd (2.4) tries it only once, and a full disk may be freed.
	// https://github.com/containerd/containerd/blob/v2.4.2/plugins/content/local/store.go#L107
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return nil, err
	}
	return local.NewStore(root)
}

// open returns the content of a digest. Content of another registry may have been pushed too.
func (s *store) open(ctx context.Context, t target, d digest.Digest) (content.ReaderAt, error) {
	if t.upstream != nil {
		if from, err := s.cache.open(ctx, d); err == nil {
			return from, nil
		}
	}
	return s.pushed.ReaderAt(ctx, v1.Descriptor{Digest: d})
}

// has reports whether the store has the content of a digest.
func (s *store) has(ctx context.Context, t target, d digest.Digest) bool {
	if t.upstream != nil {
		if _, err := s.cache.content.Info(ctx, d); err == nil {
			return true
		}
	}
	_, err := s.pushed.Info(ctx, d)
	return err == nil
}

// writer waits for other writers of the same content.
func writer(ctx context.Context, to content.Store, ref string, d v1.Descriptor) (content.Writer, error) {
	return content.OpenWriter(ctx, to, content.WithRef(ref), content.WithDescriptor(d))
}

// push stores a manifest that a client has pushed.
func (s *store) push(ctx context.Context, data []byte, d digest.Digest) error {
	of := v1.Descriptor{Digest: d, Size: int64(len(data))}
	return content.WriteBlob(ctx, s.pushed, "manifest-"+d.String(), bytes.NewReader(data), of)
}

// spool returns a body as a file without a name, because a slow client must need no memory.
func (s *store) spool(body io.Reader) (*os.File, error) {
	f, err := host.UnnamedFile(s.files.Path("/"))
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(f, body); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// tagFile returns the path of a tag. The names were checked before.
func (t target) tagFile() string {
	return path.Join(tagsDir, t.registry, t.repository, "_tags", t.reference)
}

// tagged returns the digest of a tag.
func (s *store) tagged(t target) (digest.Digest, error) {
	data, err := s.files.Read(t.tagFile())
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s:%s: %w", t.repository, t.reference, errdefs.ErrNotFound)
	}
	if err != nil {
		return "", err
	}
	return digest.Parse(string(data))
}

// tag makes a tag point to a digest.
func (s *store) tag(t target, d digest.Digest) error {
	if now, err := s.tagged(t); err == nil && now == d {
		return nil
	}
	// without the record of host.Files, which serves turndown
	if err := os.MkdirAll(s.files.Path(path.Dir(t.tagFile())), 0o755); err != nil {
		return err
	}
	return s.files.Write(t.tagFile(), []byte(d), 0o644)
}

// tags lists the tags of a repository.
func (s *store) tags(t target) ([]string, error) {
	t.reference = ""
	all, err := s.files.Entries(t.tagFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", t.repository, errdefs.ErrNotFound)
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !tagForm.MatchString(name) })
	slices.Sort(all)
	return all, err
}

var tagForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// digest returns the digest that the target names; "" for a tag.
func (t target) digest() (digest.Digest, error) {
	if tagForm.MatchString(t.reference) {
		return "", nil
	}
	d, err := digest.Parse(t.reference)
	if err != nil {
		return "", fmt.Errorf("%q: must be a tag or a digest: %w", t.reference, errdefs.ErrInvalidArgument)
	}
	return d, nil
}

// mediaType returns the type of a manifest. The field is optional in manifests of OCI.
func mediaType(manifest []byte) (string, error) {
	var m struct {
		MediaType string          `json:"mediaType"`
		Manifests json.RawMessage `json:"manifests"`
		Config    json.RawMessage `json:"config"`
	}
	err := json.Unmarshal(manifest, &m)
	switch {
	case err != nil:
	case m.MediaType != "":
		return m.MediaType, nil
	case m.Manifests != nil:
		return v1.MediaTypeImageIndex, nil
	case m.Config != nil:
		return v1.MediaTypeImageManifest, nil
	default:
		err = errors.New("no manifest of an image or an index")
	}
	return "", fmt.Errorf("manifest: %w: %w", err, errdefs.ErrInvalidArgument)
}
