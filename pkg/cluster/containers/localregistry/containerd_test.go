package localregistry

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/core/remotes/docker/config"
	"github.com/containerd/errdefs"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// node returns containerd's client with the hosts.toml files of a node.
func node(t *testing.T, files map[string]string) remotes.Resolver {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "hosts.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return docker.NewResolver(docker.ResolverOptions{
		Hosts: config.ConfigureHosts(t.Context(), config.HostOptions{HostDir: config.HostDirFromRoot(dir)}),
	})
}

// put pushes content as containerd does.
func put(t *testing.T, r remotes.Resolver, ref, mediaType string, data []byte) v1.Descriptor {
	t.Helper()
	of := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
	pusher, err := r.Pusher(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pusher.Push(t.Context(), of)
	if errdefs.IsAlreadyExists(err) {
		return of
	}
	if err == nil {
		err = content.Copy(t.Context(), w, bytes.NewReader(data), of.Size, of.Digest)
	}
	if err != nil {
		t.Fatal(err)
	}
	return of
}

func get(ctx context.Context, r remotes.Resolver, ref string, of v1.Descriptor) ([]byte, error) {
	f, err := r.Fetcher(ctx, ref)
	if err != nil {
		return nil, err
	}
	from, err := f.Fetch(ctx, of)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(from)
}

// TestContainerd pushes and pulls with the client and with the files of a node.
func TestContainerd(t *testing.T) {
	mirror, up := upstreamOf(t, "docker.io", nil)
	addr, _ := serve(t, t.TempDir(), mirror)
	mine := node(t, map[string]string{
		"localhost:5000": "server = 'http://" + addr + "'\n[host]\n[host.'http://" + addr +
			"']\ncapabilities = ['pull', 'resolve']\n",
		"docker.io": "[host]\n[host.'http://" + addr + "']\ncapabilities = ['pull', 'resolve']\n",
	})
	blob := bytes.Repeat([]byte("a layer "), 100_000)
	for _, c := range []struct{ at, as string }{
		{addr + "/my/app:dev", "localhost:5000/my/app:dev"},
		{mirror.Host + "/library/app:v1", "docker.io/library/app:v1"},
	} {
		plain := docker.WithPlainHTTP(func(string) (bool, error) { return true, nil })
		client := docker.NewResolver(docker.ResolverOptions{Hosts: docker.ConfigureDefaultRegistries(plain)})
		layer := put(t, client, c.at, v1.MediaTypeImageLayer, blob)
		put(t, client, c.at, v1.MediaTypeImageManifest,
			[]byte(`{"schemaVersion":2,"mediaType":"`+v1.MediaTypeImageManifest+`","config":{},"layers":[]}`))
		name, of, err := mine.Resolve(t.Context(), c.as)
		if err != nil || name != c.as || of.MediaType != v1.MediaTypeImageManifest {
			t.Fatalf("%s: %s %+v %v", c.as, name, of, err)
		}
		for _, one := range []v1.Descriptor{of, layer} {
			if data, err := get(t.Context(), mine, c.as, one); err != nil || digest.FromBytes(data) != one.Digest {
				t.Errorf("%s: %s has %d bytes, %v", c.as, one.MediaType, len(data), err)
			}
		}
	}
	up.Close()
	of := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: digest.FromBytes(blob), Size: int64(len(blob))}
	if data, err := get(t.Context(), mine, "docker.io/library/app:v1", of); err != nil || len(data) != len(blob) {
		t.Errorf("without the upstream: %d bytes, %v", len(data), err)
	}
	if _, _, err := mine.Resolve(t.Context(), "localhost:5000/no/such:v1"); err == nil {
		t.Error("an image that nobody pushed")
	}
}
