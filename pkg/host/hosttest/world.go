// Package hosttest holds what tests of a host share: a printout of everything
// on it that can be changed, and the contract that every step keeps.
package hosttest

import (
	_ "embed"
	"slices"
	"strings"
)

// WorldScript is a shell script that prints a host, one fact a line.
//
//go:embed world.sh
var WorldScript string

// Diff returns the lines that only before or only after has, marked with - and
// +. It is empty when both are the same world.
func Diff(before, after string) []string {
	count := map[string]int{}
	for line := range strings.Lines(before) {
		count[line]--
	}
	for line := range strings.Lines(after) {
		count[line]++
	}
	var diff []string
	for line, n := range count {
		for ; n < 0; n++ {
			diff = append(diff, "- "+strings.TrimSpace(line))
		}
		for ; n > 0; n-- {
			diff = append(diff, "+ "+strings.TrimSpace(line))
		}
	}
	slices.SortFunc(diff, func(a, b string) int { return strings.Compare(a[2:]+a, b[2:]+b) })
	return diff
}
