package image

import (
	"archive/tar"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

// modules lists what the programs in a directory were compiled from, with
// checksums, as the toolchain noted in them.
func modules(dir string) ([]string, error) {
	programs, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, p.Name()))
		if err != nil {
			return nil, fmt.Errorf("what it was compiled from: %w", err)
		}
		for _, m := range append(info.Deps, &info.Main) {
			if text := moduleSum(m); text != "" {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// moduleSum is "" for our own main, and has no sum for a module of a checkout.
func moduleSum(m *debug.Module) string {
	name := m.Path
	if strings.HasPrefix(name, OurRegistry+"/") || name == "" {
		return ""
	}
	if m.Replace != nil {
		m = m.Replace
	}
	if m.Sum == "" {
		return name + " (checkout)"
	}
	return m.Path + "@" + m.Version + " " + m.Sum
}

// packagesFile is where mmdebstrap leaves the names of the packages that it
// unpacked. It does not get into the layer.
const packagesFile = "kube-bootstrap.packages"

// packages lists the packages that a file system was unpacked from; none for
// one that was not made of packages.
func packages(raw string) ([]string, error) {
	file, err := os.Open(raw)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	archive := tar.NewReader(file)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if path.Clean("/"+h.Name) == "/"+packagesFile {
			data, err := io.ReadAll(archive)
			return parsePackages(string(data)), err
		}
	}
}

// parsePackages reads file names: bash_1%3a5.2-1_amd64.deb is bash=1:5.2-1.
func parsePackages(names string) (all []string) {
	for line := range strings.Lines(names) {
		fields := strings.Split(strings.TrimSpace(line), "_")
		if len(fields) == 3 {
			all = append(all, fields[0]+"="+strings.ReplaceAll(fields[1], "%3a", ":"))
		}
	}
	slices.Sort(all)
	return all
}
