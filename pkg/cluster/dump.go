package cluster

import (
	"archive/tar"
	"context"
	_ "embed" // the script that gathers
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dumpScript packs what explains a node. It goes on whatever fails.
//
//go:embed rootfs/dump.sh
var dumpScript string

// Dump writes what a bug report needs into a directory, one below it for each
// node: status, logs, network, and on the first control plane the objects of
// the cluster. Secrets are left out or removed, see redacted.
func Dump(ctx context.Context, options Options, dir string, emit func(Event)) error {
	return onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		first, err := f.firstMaster(ctx, "")
		if err != nil {
			first = docker.FoundMachine{} // a cluster without one is what a dump is for
		}
		var row []step.Step
		for _, m := range found {
			row = append(row, f.dumpStep(m, filepath.Join(dir, m.Name), m.Name == first.Name))
		}
		return f.run(ctx, step.Plan{row})
	})
}

func (f *fleet) dumpStep(m docker.FoundMachine, dir string, objects bool) step.Step {
	return step.Step{
		Name: "dump " + m.Name, Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"write " + dir}, nil },
		Apply: func(ctx context.Context) error {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return err
			}
			log := redactText([]byte(f.docker.Tail(ctx, m.Name, 5000)))
			if err := os.WriteFile(filepath.Join(dir, "console.log"), log, 0o600); err != nil || m.State != "running" {
				return err
			}
			// A node that cannot be asked does not keep the others from telling.
			if err := f.dumpHost(ctx, m, dir, objects); err != nil && ctx.Err() == nil {
				return os.WriteFile(filepath.Join(dir, "error.txt"), redactText([]byte(err.Error()+"\n")), 0o600)
			}
			return ctx.Err()
		},
	}
}

func (f *fleet) dumpHost(ctx context.Context, m docker.FoundMachine, dir string, objects bool) error {
	reader, writer := io.Pipe()
	var wg sync.WaitGroup
	var ran error
	wg.Go(func() {
		args := []string{"/bin/sh", "-c", dumpScript, "sh", fmt.Sprint(objects)}
		ran = driver.OpenDocker(f.docker, m.Name).Exec(ctx, driver.Exec{Args: args, Stdout: writer})
		writer.CloseWithError(ran)
	})
	err := unpack(reader, dir)
	reader.CloseWithError(err)
	wg.Wait()
	return errors.Join(err, ran)
}

// unpack writes the files of an archive below dir, without their secrets.
func unpack(from io.Reader, dir string) error {
	const most = 64 << 20 // of one file
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, from) // what tar fills its last block with
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(archive, most))
		if err != nil {
			return err
		}
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, redacted(header.Name, data), 0o600); err != nil {
			return err
		}
	}
}
