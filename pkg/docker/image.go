package docker

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/silence"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ImageService are the images of an engine.
type ImageService struct{ api *client.Client }

// Images returns the images of the engine.
func (d *Engine) Images() ImageService { return ImageService{d.Client} }

// Has reports whether the engine holds an image of that reference.
func (i ImageService) Has(ctx context.Context, ref string) (bool, error) {
	found, err := i.inspect(ctx, ref)
	return found.ID != "", err
}

// Layers returns the diff IDs of the image with that reference, which identify its
// content in every kind of store; none if it, or the engine, does not exist.
func (i ImageService) Layers(ctx context.Context, ref string) ([]string, error) {
	found, err := i.inspect(ctx, ref)
	return found.RootFS.Layers, err
}

// inspect returns the zero value if the image, or the engine, does not exist.
func (i ImageService) inspect(ctx context.Context, ref string) (client.ImageInspectResult, error) {
	found, err := i.api.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || absent(err) {
		return client.ImageInspectResult{}, nil
	}
	return found, noAnswer(err)
}

// LayerDirs returns the directories in which the engine has unpacked the layers of
// an image, by diff ID. Only the storage driver overlay2 has such directories.
func (i ImageService) LayerDirs(ctx context.Context, ref string) (map[string]string, error) {
	found, err := i.api.ImageInspect(ctx, ref)
	if err != nil || found.GraphDriver == nil || found.GraphDriver.Name != "overlay2" {
		return nil, err
	}
	dirs := []string{found.GraphDriver.Data["UpperDir"]}
	if lower := found.GraphDriver.Data["LowerDir"]; lower != "" {
		dirs = append(dirs, strings.Split(lower, ":")...)
	}
	slices.Reverse(dirs) // the image lists its lowest layer first
	layers := found.RootFS.Layers
	byLayer := map[string]string{}
	for n := range min(len(layers), len(dirs)) {
		byLayer[layers[n]] = dirs[n]
	}
	return byLayer, nil
}

// Named lists the references that match a pattern: "registry/name:*".
func (i ImageService) Named(ctx context.Context, pattern string) ([]string, error) {
	refs, err := i.Matching(ctx, client.Filters{}.Add("reference", pattern))
	return refs, step.Wrap(err, "list images")
}

// Matching lists the references of the images that a filter selects.
func (i ImageService) Matching(ctx context.Context, filter client.Filters) (refs []string, err error) {
	list, err := i.api.ImageList(ctx, client.ImageListOptions{Filters: filter})
	for _, image := range list.Items {
		refs = append(refs, image.RepoTags...)
	}
	return refs, err
}

// Load reads images from a `docker save` archive.
func (i ImageService) Load(ctx context.Context, archive io.Reader) error {
	return send(ctx, archive, "load", "images", func(ctx context.Context, archive io.Reader) (io.ReadCloser, error) {
		// not quiet: the engine then reports progress, which resets the timer
		return i.api.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(false))
	})
}

// Save writes images as a `docker save` archive.
func (i ImageService) Save(ctx context.Context, w io.Writer, refs ...string) error {
	ctx, watch := silence.Begin(ctx)
	defer watch.End()
	archive, err := i.api.ImageSave(ctx, refs)
	if err == nil {
		defer archive.Close()
		_, err = io.Copy(w, watch.Heard(archive))
	}
	return watch.Explain(ctx, err)
}

// Import makes an image of a root file system. changes are instructions of a Dockerfile.
func (i ImageService) Import(ctx context.Context, ref string, rootfs io.Reader, changes ...string) error {
	return send(ctx, rootfs, "import image", ref, func(ctx context.Context, rootfs io.Reader) (io.ReadCloser, error) {
		source := client.ImageImportSource{Source: rootfs, SourceName: "-"}
		return i.api.ImageImport(ctx, source, ref, client.ImageImportOptions{Changes: changes})
	})
}

// ImageFile is a file of an image, or a directory if its name ends in a slash.
type ImageFile struct {
	Name  string
	Data  []byte
	Mode  int64
	Owner int
}

func (f ImageFile) write(archive *tar.Writer) error {
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Name, Mode: f.Mode, Size: int64(len(f.Data)), Uid: f.Owner, Gid: f.Owner,
	}
	if strings.HasSuffix(f.Name, "/") {
		h.Typeflag = tar.TypeDir
	}
	return pack(archive, h, bytes.NewReader(f.Data))
}

// programOwner is the value of OurLabel for images of ImportProgram.
const programOwner = "program"

// RemovePrograms removes all images of ImportProgram, also those without a name: of two runs that
// import the same image at the same time, one takes the name from the other. An image of a
// container that runs stays.
func (i ImageService) RemovePrograms(ctx context.Context) error {
	return i.RemoveAll(ctx, client.Filters{}.Add("label", OurLabel+"="+programOwner), func(err error) error {
		if errdefs.IsConflict(err) {
			return nil
		}
		return Gone(err)
	})
}

// ImportProgram creates an image with the executable /kube-bootstrap and others.
func (i ImageService) ImportProgram(ctx context.Context, ref, path string, others ...ImageFile) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	rootfs := packed(func(archive *tar.Writer) error {
		err := pack(archive, &tar.Header{Typeflag: tar.TypeReg, Name: "kube-bootstrap", Mode: 0o755, Size: info.Size()},
			file)
		for _, f := range others {
			err = errors.Join(err, f.write(archive))
		}
		return err
	})
	defer rootfs.Close()
	return i.Import(ctx, ref, rootfs, "LABEL "+OurLabel+"="+programOwner)
}

// failureIn returns the error in the lines of an answer that began as a success.
func failureIn(answer io.Reader) error {
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line := lines.Text(); strings.Contains(line, `"error"`) {
			return errors.New(line)
		}
	}
	return lines.Err()
}

// Remove removes an image reference. A missing image is not an error.
func (i ImageService) Remove(ctx context.Context, ref string) error {
	_, err := i.api.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if client.IsErrConnectionFailed(err) {
		return nil
	}
	return Gone(err)
}

// RemoveUnused removes an image reference unless a container uses it. The engine would remove
// the image of a stopped container by force, but could then no longer copy this container.
func (i ImageService) RemoveUnused(ctx context.Context, ref string) error {
	users, err := i.Users(ctx, ref)
	if err != nil || len(users) > 0 {
		return err
	}
	return i.Remove(ctx, ref)
}

// Users returns the containers that prevent the removal of an image reference: running and
// stopped containers of the image, and containers that mount the image. It returns none if the
// image has further references, or if the engine does not answer.
func (i ImageService) Users(ctx context.Context, ref string) (users []string, err error) {
	found, err := i.api.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return nil, nil
	}
	if err != nil || len(found.RepoTags) > 1 {
		return nil, err
	}
	list, err := i.api.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	for _, c := range list.Items {
		mounts := slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool {
			return m.Type == mount.TypeImage && (m.Source == ref || m.Source == found.ID || m.Name == ref)
		})
		if c.ImageID == found.ID || mounts {
			users = append(users, NameOf(c))
		}
	}
	return users, nil
}

// RemoveAll removes the images that a filter selects, also those without a name. failed decides on the
// error of each removal.
func (i ImageService) RemoveAll(ctx context.Context, filter client.Filters, failed func(error) error) error {
	list, err := i.api.ImageList(ctx, client.ImageListOptions{Filters: filter})
	return errors.Join(err, host.Each(list.Items, func(found image.Summary) error {
		_, err := i.api.ImageRemove(ctx, found.ID, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		return failed(err)
	}))
}

// send sends an archive with images and returns the failure in the engine's answer.
func send(
	ctx context.Context, archive io.Reader, verb, what string,
	request func(context.Context, io.Reader) (io.ReadCloser, error),
) error {
	ctx, watch := silence.Begin(ctx)
	defer watch.End()
	answer, err := request(ctx, watch.Sent(archive))
	if err == nil {
		defer answer.Close()
		err = failureIn(watch.Heard(answer))
	}
	return step.Wrap(watch.Explain(ctx, err), "%s %s", verb, what)
}
