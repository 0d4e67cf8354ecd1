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
// typing errors away, and one for each three letters. It returns "" if there is none.
func Nearest(name string, known []string) string {
	best, distance := "", 4
	for _, k := range known {
		limit := max(1, min(len(name), len(k))/3)
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d < distance && d <= limit && d < len(k) {
			best, distance = k, d
		}
	}
	return best
}

// edits counts the letters to change, add, drop or exchange with the next to get from a to b.
func edits(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range len(a) {
		for j := range len(b) {
			cost := rows[i][j]
			if a[i] != b[j] {
				cost++
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				cost = min(cost, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = min(cost, rows[i][j+1]+1, rows[i+1][j]+1)
		}
	}
	return rows[len(a)][len(b)]
}
