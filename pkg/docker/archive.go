package docker

import (
	"archive/tar"
	"context"
	"io"
	"time"

	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SentFile is a local file that is copied to the engine's machine.
type SentFile struct {
	Name    string
	Size    int64
	ModTime time.Time
	Content io.Reader
}

// Send writes a file into a directory of a container.
func (d *Engine) Send(ctx context.Context, id, dir string, file SentFile) error {
	content := packed(func(archive *tar.Writer) error {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Name, Mode: 0o644, Size: file.Size, ModTime: file.ModTime,
		}
		return pack(archive, header, file.Content)
	})
	defer content.Close()
	_, err := d.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: dir, Content: content})
	return step.Wrap(err, "copy %s to the engine", file.Name)
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
