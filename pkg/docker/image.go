package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// HasImage reports whether the engine holds an image of that reference.
func (d *Engine) HasImage(ctx context.Context, ref string) (bool, error) {
	_, err := d.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || absent(err) {
		return false, nil
	}
	return err == nil, noAnswer(err)
}

// ImageLayers returns the diff IDs of the image with that reference: none if
// it, or the engine, is not there. They say what an image holds, whichever
// kind of store the engine uses.
func (d *Engine) ImageLayers(ctx context.Context, ref string) ([]string, error) {
	found, err := d.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || absent(err) {
		return nil, nil
	}
	return found.RootFS.Layers, noAnswer(err)
}

// ImagesNamed lists the references that match a pattern: "registry/name:*".
func (d *Engine) ImagesNamed(ctx context.Context, pattern string) ([]string, error) {
	list, err := d.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", pattern)})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	var refs []string
	for _, image := range list.Items {
		refs = append(refs, image.RepoTags...)
	}
	return refs, nil
}

// Load reads images from a `docker save` archive.
func (d *Engine) Load(ctx context.Context, archive io.Reader) error {
	result, err := d.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer result.Close()
	return failureIn(result, "load", "images")
}

// Save writes images as a `docker save` archive.
func (d *Engine) Save(ctx context.Context, w io.Writer, refs ...string) error {
	archive, err := d.ImageSave(ctx, refs)
	if err != nil {
		return err
	}
	defer archive.Close()
	_, err = io.Copy(w, archive)
	return err
}

// ImportImage makes an image out of a root file system in a tar stream.
func (d *Engine) ImportImage(ctx context.Context, ref string, rootfs io.Reader) error {
	answer, err := d.ImageImport(ctx, client.ImageImportSource{Source: rootfs, SourceName: "-"}, ref, client.ImageImportOptions{})
	if err != nil {
		return fmt.Errorf("import image %s: %w", ref, err)
	}
	defer answer.Close()
	return failureIn(answer, "import image", ref)
}

// ImportProgram creates an image for a cluster that contains a single file, the
// executable /PROGRAM.
func (d *Engine) ImportProgram(ctx context.Context, ref, fleet, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	reader, writer := io.Pipe()
	defer reader.Close()
	go func() {
		archive := tar.NewWriter(writer)
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "kube-bootstrap", Mode: 0o755, Size: info.Size()})
		if err == nil {
			_, err = io.Copy(archive, file)
		}
		writer.CloseWithError(errors.Join(err, archive.Close()))
	}()
	label := "LABEL " + FleetLabel + "=" + fleet
	answer, err := d.ImageImport(ctx, client.ImageImportSource{Source: reader, SourceName: "-"}, ref, client.ImageImportOptions{Changes: []string{label}})
	if err != nil {
		return fmt.Errorf("import image %s: %w", ref, err)
	}
	defer answer.Close()
	return failureIn(answer, "import image", ref)
}

// failureIn finds what went wrong after the engine had already said yes.
func failureIn(answer io.Reader, verb, what string) error {
	text, err := io.ReadAll(answer)
	if err == nil && strings.Contains(string(text), `"error"`) {
		err = errors.New(string(text))
	}
	return doing(verb, what, err)
}

// RemoveImage removes an image reference; one that is not there is no error.
func (d *Engine) RemoveImage(ctx context.Context, ref string) error {
	_, err := d.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return nil
	}
	return err
}

// ImageUsers returns the containers that prevent the removal of an image
// reference: running or stopped containers of the image, and containers that
// mount it. It returns none if the image has further references, or if the
// engine does not answer.
func (d *Engine) ImageUsers(ctx context.Context, ref string) ([]string, error) {
	found, err := d.ImageInspect(ctx, ref)
	if errdefs.IsNotFound(err) || err != nil && client.IsErrConnectionFailed(err) {
		return nil, nil
	}
	if err != nil || len(found.RepoTags) > 1 {
		return nil, err
	}
	list, err := d.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	var users []string
	for _, c := range list.Items {
		mounts := slices.ContainsFunc(c.Mounts, func(m container.MountPoint) bool {
			return m.Type == mount.TypeImage && (m.Source == ref || m.Source == found.ID || m.Name == ref)
		})
		if c.ImageID == found.ID || mounts {
			users = append(users, nameOf(c))
		}
	}
	return users, nil
}

// Images lists the references of the images that were made of a fleet's
// machines.
func (d *Engine) Images(ctx context.Context, fleet string) ([]string, error) {
	list, err := d.ImageList(ctx, client.ImageListOptions{Filters: fleetFilter(FleetLabel, fleet)})
	var all []string
	for _, image := range list.Items {
		all = append(all, image.RepoTags...)
	}
	return all, err
}

// removeImages removes the images of a fleet's machines, those without a name
// as well.
func (d *Engine) removeImages(ctx context.Context, filter client.Filters) error {
	list, err := d.ImageList(ctx, client.ImageListOptions{Filters: filter})
	errs := []error{err}
	for _, image := range list.Items {
		_, err := d.ImageRemove(ctx, image.ID, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		errs = append(errs, gone(err))
	}
	return errors.Join(errs...)
}
