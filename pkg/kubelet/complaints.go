package kubelet

import (
	"slices"
	"strings"
	"unicode"
)

// consequences are complaints that follow from others, and are repeated for every pod
// and second while the API server does not answer.
var consequences = []string{
	"mirror pod", "Unable to write event", "Server rejected event", "Error getting the current node from lister",
	"Nameserver limits exceeded", "node status will not be updated",
}

// complaints returns the last warnings and errors of a log, each once, or its end.
func complaints(log string, count int) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	var kept []string
	seen := map[string]bool{}
	for _, line := range slices.Backward(lines) {
		if len(kept) == count {
			break
		}
		if message := messageOf(line); isComplaint(line) && !seen[message] {
			seen[message] = true
			kept = append(kept, line)
		}
	}
	slices.Reverse(kept)
	if len(kept) == 0 {
		kept = lines[max(0, len(lines)-count):]
	}
	return strings.Join(kept, "\n")
}

// isComplaint: "E1121 08:15:55.595397       1 kubelet.go:1198] ...", or what a
// program prints that ends at its start.
func isComplaint(line string) bool {
	info := strings.HasPrefix(line, "I") && strings.Contains(line, "] ")
	follows := slices.ContainsFunc(consequences, func(c string) bool { return strings.Contains(line, c) })
	return line != "" && !info && !follows
}

// messageOf is a line without time, place and numbers: an interval may grow.
func messageOf(line string) string {
	if _, message, ok := strings.Cut(line, "] "); ok {
		line = message
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, line)
}
