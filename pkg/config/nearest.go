package config

import (
	"cmp"
	"fmt"
	"strings"
)

// Suggestion names the field that was probably meant by a flag, variable or field.
func Suggestion(name string) string {
	var fields []string
	for _, s := range settings {
		if name == s.Flag || name == s.Env {
			return fmt.Sprintf(", did you mean %s?", s.Field)
		}
		fields = append(fields, s.Field)
	}
	return cmp.Or(Meant(name, fields), "; `kube-bootstrap config init` prints all there are")
}

// DidYouMean returns the known name that was probably meant, or all known names.
func DidYouMean(name string, known []string) string {
	return cmp.Or(Meant(name, known), "; there are "+strings.Join(known, ", "))
}

// Meant returns the question whether the user meant the nearest known name, or "" if none is near.
func Meant(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return ", did you mean " + best + "?"
	}
	return ""
}

// Nearest returns the known name that name was probably meant to be: at most three
// typing errors away. It returns "" if there is none.
func Nearest(name string, known []string) string {
	best, distance := "", 4
	for _, k := range known {
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// edits counts the letters to change, add or drop to get from a to b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
