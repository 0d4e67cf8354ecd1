package imagestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"slices"
	"strings"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/log"
	"github.com/containerd/platforms"
	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// criNamespace is the containerd namespace of the kubelet's images.
const criNamespace = "k8s.io"

// criLabels register an image with CRI, and exempt it from the image garbage
// collection of the kubelet: a host without a registry could not pull it again.
// https://github.com/containerd/containerd/blob/v2.4.2/internal/cri/labels/labels.go#L42-L49
var criLabels = map[string]string{"io.cri-containerd.image": "managed", "io.cri-containerd.pinned": "pinned"}

type containerdStore struct {
	socket, snapshotter, dir string
	others                   LayerDirs
}

// Containerd returns the image store of the containerd on this host that listens
// on the socket. An empty snapshotter selects the snapshotter of the pods. Until
// they are unpacked, layers are in unlinked files in dir. They share
// their large files with the directories that others returns.
func Containerd(socket, snapshotter, dir string, others LayerDirs) Target {
	return containerdStore{socket, snapshotter, dir, others}
}

func (s containerdStore) Kind() image.Store { return image.Containerd }

func (s containerdStore) with(ctx context.Context, do func(context.Context, *containerd.Client) error) error {
	c, err := containerd.New(s.socket, containerd.WithTimeout(step.CheckLimit(ctx)))
	if err != nil {
		return fmt.Errorf("connect to containerd at %s: %w", s.socket, err)
	}
	defer c.Close()
	// The library logs only what it also returns as errors.
	if err := log.SetLevel("panic"); err != nil {
		return err
	}
	return do(namespaces.WithNamespace(ctx, criNamespace), c)
}

// withSnapshotter returns the store with its snapshotter determined.
func (s containerdStore) withSnapshotter(ctx context.Context, c *containerd.Client) containerdStore {
	if s.snapshotter == "" {
		s.snapshotter = podSnapshotter(ctx, c)
	}
	return s
}

// snapshotterDir is the prefix of the directory in which containerd stores the
// data of a snapshotter; the name follows.
const snapshotterDir = "io.containerd.snapshotter.v1."

// podSnapshotter returns the snapshotter of the CRI plugin: pods cannot start
// from images that are unpacked into another one. It returns an empty string,
// which means the default of containerd, if there is no CRI plugin.
func podSnapshotter(ctx context.Context, c *containerd.Client) string {
	conn, ok := c.Conn().(grpc.ClientConnInterface)
	if !ok {
		return ""
	}
	answer, err := runtime.NewImageServiceClient(conn).ImageFsInfo(ctx, &runtime.ImageFsInfoRequest{})
	if err != nil {
		return ""
	}
	for _, fs := range answer.GetImageFilesystems() {
		if name, ok := strings.CutPrefix(path.Base(fs.GetFsId().GetMountpoint()), snapshotterDir); ok {
			return name
		}
	}
	return ""
}

func (s containerdStore) State(ctx context.Context, want RequiredImage) (state Comparison, err error) {
	if err := dial(ctx, s.socket); errors.Is(err, fs.ErrNotExist) {
		return Absent, nil
	} else if err != nil {
		return Absent, step.NoAnswer(err)
	}
	err = s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		found, err := c.ImageService().Get(ctx, want.Ref)
		if err != nil {
			return gone(err)
		}
		state, err = s.withSnapshotter(ctx, c).compare(ctx, containerd.NewImage(c, found), want)
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = step.NoAnswer(err)
	}
	return state, err
}

// compare compares the digest, or the config if the image was pulled from a
// registry and so has another manifest, or the layers if nothing else is known.
// An incomplete image counts as absent.
func (s containerdStore) compare(ctx context.Context, img containerd.Image, want RequiredImage) (Comparison, error) {
	if want.Manifest != "" {
		if d := img.Target().Digest; d != want.Manifest && d != want.Index && !hasConfig(ctx, img, want.Config) {
			return Other, nil
		}
	}
	layers := want.Layers
	unpacked, err := img.IsUnpacked(ctx, s.snapshotter)
	if unpacked && want.Manifest == "" && len(want.Layers) > 0 {
		layers, err = img.RootFS(ctx)
	}
	switch {
	case errdefs.IsNotFound(err) || err == nil && !unpacked:
		return Absent, nil
	case err != nil:
		return Absent, err
	case !slices.Equal(layers, want.Layers):
		return Other, nil
	}
	return Same, nil
}

func hasConfig(ctx context.Context, img containerd.Image, want digest.Digest) bool {
	config, err := img.Config(ctx)
	return err == nil && config.Digest == want
}

// Load unpacks all images, so that the first pod does not wait for that, and
// only then names them: an interrupted or failed load leaves no name behind.
func (s containerdStore) Load(ctx context.Context, open func() io.ReadCloser) error {
	return s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		return leased(ctx, c, func(ctx context.Context) error {
			return s.withSnapshotter(ctx, c).load(ctx, c, open)
		})
	})
}

// leased protects what do writes from the garbage collection of containerd until
// it has a name. If do fails, leased waits for the collection of its leftovers:
// containerd would schedule it only after a hundred more changes. A lease that
// is not deleted expires after a day.
// https://github.com/containerd/containerd/blob/v2.4.2/plugins/gc/scheduler.go#L279-L287
func leased(ctx context.Context, c *containerd.Client, do func(context.Context) error) error {
	ctx, done, err := c.WithLease(ctx)
	if err != nil {
		return err
	}
	err = do(ctx)
	ctx, cancel := step.Checking(context.WithoutCancel(ctx)) // the collection goes on without this wait
	defer cancel()
	if err == nil {
		_ = done(ctx)
		return nil
	}
	id, _ := leases.FromContext(ctx)
	_ = c.LeasesService().Delete(ctx, leases.Lease{ID: id}, leases.SynchronousDelete)
	return err
}

func (s containerdStore) load(ctx context.Context, c *containerd.Client, open func() io.ReadCloser) error {
	staging := newStagingStore(c, s.snapshotter, s.dir)
	defer staging.close()
	archive := open()
	defer archive.Close()
	loaded, err := staging.read(ctx, archive)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if c, err = staging.client(c); err != nil {
		return err
	}
	if err := s.unpack(ctx, c, loaded, platforms.All); err != nil {
		return err
	}
	if err := staging.unpacked.share(ctx, s.others); err != nil {
		return err
	}
	for _, img := range loaded {
		if err := nameImage(ctx, c, img); err != nil {
			return fmt.Errorf("name %s: %w", img.Name, err)
		}
	}
	return nil
}

// unpack unpacks all images concurrently, as each waits for the disk.
func (s containerdStore) unpack(
	ctx context.Context, c *containerd.Client, all []images.Image, platform platforms.MatchComparer,
) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, img := range all {
		group.Go(func() error {
			return step.Wrap(containerd.NewImageWithPlatform(c, img, platform).Unpack(ctx, s.snapshotter),
				"unpack %s", img.Name)
		})
	}
	return group.Wait()
}

func nameImage(ctx context.Context, c *containerd.Client, img images.Image) error {
	_, err := c.ImageService().Create(ctx, img)
	if errdefs.IsAlreadyExists(err) {
		_, err = c.ImageService().Update(ctx, img, "target", "labels")
	}
	return err
}

// Users returns none: containerd can remove an image that containers use, and
// all containers in this namespace are pods.
func (containerdStore) Users(context.Context, string) ([]string, error) { return nil, nil }

func (s containerdStore) Remove(ctx context.Context, refs []string) error {
	if dial(ctx, s.socket) != nil {
		return fmt.Errorf("containerd does not answer at %s, so its images cannot be removed; start it and try again",
			s.socket)
	}
	return s.with(ctx, func(ctx context.Context, c *containerd.Client) error {
		return host.Each(refs,
			func(ref string) error { return step.Wrap(removeImage(ctx, c, ref), "remove image %s", ref) })
	})
}

// removeImage removes a reference, and the name that CRI gives an image by the
// digest of its config: that name would keep the content alive.
func removeImage(ctx context.Context, c *containerd.Client, ref string) error {
	found, err := c.GetImage(ctx, ref)
	if err != nil {
		return gone(err)
	}
	names := []string{ref}
	if config, err := found.Config(ctx); err == nil {
		names = append([]string{config.Digest.String()}, names...)
	}
	return removeEach(names, func(name string) error {
		return c.ImageService().Delete(ctx, name, images.SynchronousDelete())
	})
}

// dial connects to a socket once. The client library would retry until somebody
// listens.
func dial(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
