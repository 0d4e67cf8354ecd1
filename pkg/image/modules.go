package image

import (
	"debug/buildinfo"
	"fmt"
	"os"
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
// checkout or a stub.
func moduleSum(m *debug.Module) string {
	name := m.Path
	if strings.HasPrefix(name, OurRegistry+"/") || name == "" {
		return ""
	}
	if m.Replace != nil {
		m = m.Replace
	}
	if strings.HasPrefix(m.Path, stubDir) {
		return name + " (stub)"
	}
	if m.Sum == "" {
		return name + " (checkout)"
	}
	return m.Path + "@" + m.Version + " " + m.Sum
}
