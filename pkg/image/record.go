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
