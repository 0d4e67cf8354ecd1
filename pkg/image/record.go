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

// modules lists the modules of the executables in a directory, with
// checksums, from their build info.
func modules(dir string) ([]string, error) {
	programs, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, p := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, p.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the build info: %w", err)
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

// moduleSum returns "" for the main module, and no checksum for a module of a
// checkout.
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

// packagesFile contains the names of the packages that mmdebstrap unpacked.
// It is not part of the layer.
const packagesFile = "kube-bootstrap.packages"

// packages lists the packages of a file system, or none if it was not built
// from packages.
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

// parsePackages parses file names: bash_1%3a5.2-1_amd64.deb is bash=1:5.2-1.
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
