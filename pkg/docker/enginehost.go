package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// EngineHost describes the host of the engine, as far as machines on it depend on it.
type EngineHost struct {
	Caps      []string // the bounding set
	Modules   bool     // whether it has /lib/modules
	FreeBytes int64    // free space on the file system of the engine's data
}

// engineHostScript inspects the host of the engine from a container on it, because an
// engine with a local socket may run in a virtual machine or on another host too.
const engineHostScript = `cat /proc/1/status
[ ! -d /machine/lib/modules ] || echo "Modules: 1"
echo "Free: $(df -B1 --output=avail "/machine$1" | tail -n 1)"`

// EngineHost inspects the host of the engine with a container of an image with a shell.
func (c Cluster) EngineHost(ctx context.Context, image string) (EngineHost, error) {
	found, err := facts(ctx, c.api)
	if err != nil {
		return EngineHost{}, err
	}
	text, err := c.output(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: []string{"/bin/sh", "-c", engineHostScript, "sh", found.DockerRootDir}},
		HostConfig: &container.HostConfig{PidMode: "host", NetworkMode: "none",
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/", Target: "/machine", ReadOnly: true}}},
	})
	if err != nil {
		return EngineHost{}, fmt.Errorf("inspect the host of the engine: %w", err)
	}
	return parseEngineHost(text)
}

func parseEngineHost(text string) (h EngineHost, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "CapBnd":
			h.Caps, err = parseBoundingSet(value)
		case "Modules":
			h.Modules = true
		case "Free":
			h.FreeBytes, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return h, fmt.Errorf("the host of the engine reports %q: %w", line, err)
		}
	}
	if len(h.Caps) == 0 {
		return h, errors.New("the host of the engine reports no capabilities")
	}
	return h, nil
}

func parseBoundingSet(word string) (caps []string, err error) {
	mask, err := strconv.ParseUint(word, 16, 64)
	for bit, name := range capabilities {
		if mask>>bit&1 == 1 {
			caps = append(caps, name)
		}
	}
	return caps, err
}

// helper is the value of OurLabel for short-lived helper containers.
const helper = "helper"

func (c Cluster) withHelper(ctx context.Context, options client.ContainerCreateOptions, use func(id string) error) error {
	options.Config.Labels = map[string]string{OurLabel: helper, ClusterLabel: c.name}
	id, err := create(ctx, c.api, options)
	if err != nil {
		return err
	}
	err = use(id)
	return errors.Join(err, removeAnyway(ctx, c.api, id))
}

// output runs a helper container to its end and returns what it wrote.
func (c Cluster) output(ctx context.Context, options client.ContainerCreateOptions) (text string, err error) {
	err = c.withHelper(ctx, options, func(id string) error {
		wait := c.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
		if _, err := c.api.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		var code int64
		select {
		case end := <-wait.Result:
			code = end.StatusCode
		case err := <-wait.Error:
			return err
		}
		text, err = logs(ctx, c.api, id, client.ContainerLogsOptions{})
		if err == nil && code != 0 {
			err = fmt.Errorf("%w: %s", ExitCode(code), strings.TrimSpace(text))
		}
		return err
	})
	return text, err
}

// SentFile is a local file that is copied to the engine's machine.
type SentFile struct {
	Name    string
	Size    int64
	ModTime time.Time
	Content io.Reader
}

// File returns size and time of a file of a machine, running or not, or os.ErrNotExist.
func (c Machines) File(ctx context.Context, name, path string) (int64, time.Time, error) {
	found, err := c.api.ContainerStatPath(ctx, name, client.ContainerStatPathOptions{Path: path})
	if errdefs.IsNotFound(err) {
		err = os.ErrNotExist
	}
	return found.Stat.Size, found.Stat.Mtime, err
}

// FillVolume writes a file into a volume of the cluster, which it makes if it is missing,
// through the API: the engine's machine need not see paths of this machine.
func (c Cluster) FillVolume(ctx context.Context, volume, image string, file SentFile) error {
	if err := c.MakeVolume(ctx, volume, nil); err != nil {
		return err
	}
	const target = "/volume"
	carrier := client.ContainerCreateOptions{
		Config: &container.Config{Image: image, Entrypoint: []string{"/bin/true"}},
		HostConfig: &container.HostConfig{NetworkMode: "none",
			Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: target}}},
	}
	return c.withHelper(ctx, carrier, func(id string) error {
		content := packed(func(archive *tar.Writer) error {
			header := &tar.Header{Typeflag: tar.TypeReg, Name: file.Name, Mode: 0o644, Size: file.Size, ModTime: file.ModTime}
			return pack(archive, header, file.Content)
		})
		defer content.Close()
		_, err := c.api.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: target, Content: content})
		return step.Wrap(err, "copy %s to the engine", file.Name)
	})
}

// packed returns the archive that write writes.
func packed(write func(*tar.Writer) error) *io.PipeReader {
	reader, writer := io.Pipe()
	go func() {
		archive := tar.NewWriter(writer)
		err := write(archive)
		if err == nil {
			err = archive.Close()
		}
		writer.CloseWithError(err)
	}()
	return reader
}

func pack(archive *tar.Writer, header *tar.Header, content io.Reader) error {
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
