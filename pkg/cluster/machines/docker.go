package machines

import (
	"cmp"
	"context"
	_ "embed" // docker.sh
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// dockerScript installs Docker with the package manager of a machine.
//
//go:embed docker.sh
var dockerScript string

// packagesDir is the directory below programDir with the packages of DockerSource.
const packagesDir = "packages"

// packageFiles are the extensions of packages, by package manager.
var packageFiles = map[string]string{"apt-get": ".deb", "dnf": ".rpm", "yum": ".rpm", "zypper": ".rpm", "apk": ".apk"}

// DockerSource determines whether machines without Docker get it, and from where. The zero value
// installs nothing.
type DockerSource struct {
	Repositories bool   // from the repositories of their distribution
	Packages     string // from the packages of this directory of this machine, without network; "": none
}

// problem returns why a machine has no Docker and cannot get it; nil if it can.
func (d DockerSource) problem(m Machine, f Facts) error {
	const remedy = "install Docker, such as the package docker.io, or add --install-docker"
	switch {
	case f.Docker:
		return nil
	case !d.Repositories && d.Packages == "":
		return problem(m, "docker", "it has no Docker", remedy)
	case packageFiles[f.PackageManager] == "":
		return problem(m, "docker", "it has neither Docker nor apt-get, dnf, yum, zypper or apk, which install it",
			"install Docker")
	}
	if _, err := d.files(f); err != nil {
		return problem(m, "docker", "it has no Docker: "+err.Error(),
			"put the packages of Docker and of what they need there")
	}
	return nil
}

// files returns the paths of the packages for a machine. A directory for its architecture goes first,
// because the names of packages of other architectures differ between distributions.
func (d DockerSource) files(f Facts) (paths []string, err error) {
	if d.Packages == "" {
		return nil, nil
	}
	dir := filepath.Join(d.Packages, f.Arch)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		dir = d.Packages
		entries, err = os.ReadDir(dir)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == packageFiles[f.PackageManager] {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no files *%s", dir, packageFiles[f.PackageManager])
	}
	return paths, err
}

// installDocker gives a machine Docker, unless it has one.
func (r *run) installDocker(ctx context.Context, m Machine) error {
	name, f := m.Spec.Name, r.facts[m.Spec.Name]
	if f.Docker {
		return nil
	}
	packages, err := r.options.Docker.files(f)
	if err != nil {
		return fmt.Errorf("machine %s: %w", name, err)
	}
	dir := ""
	var uploads []step.Step
	for _, path := range packages {
		dir = programDir + "/" + packagesDir
		u := transfer.File{From: path, To: programDir + "/" + packagesDir + "/" + filepath.Base(path), Mode: 0o644}
		uploads = append(uploads, r.files.sending(u, name))
	}
	script := access.Script(dockerScript, programDir, f.PackageManager, dir)
	install := func(ctx context.Context) error {
		return dockerError(m, f, access.Run(ctx, r.provider.Node(name), script...))
	}
	return r.apply(ctx, name, step.Plan{
		uploads, {step.Always(step.IDOf("install-docker", name), "install Docker on "+name, install)},
	})
}

// shownOutput is the number of lines of the output of a package manager that an error has.
const shownOutput = 10

// dockerError is the error of dockerScript, with the last lines of its output.
func dockerError(m Machine, f Facts, err error) error {
	failed, ok := errors.AsType[*host.CommandError](err)
	if !ok {
		return err
	}
	lines := strings.Split(strings.TrimSpace(failed.Output), "\n")
	said := strings.Join(lines[max(0, len(lines)-shownOutput):], "\n")
	return problem(m, "docker", f.PackageManager+" cannot install Docker: "+cmp.Or(said, failed.Err.Error()),
		"put this right, or install Docker on the machine")
}
