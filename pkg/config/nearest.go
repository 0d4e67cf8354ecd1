package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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

// DidYouMean returns the known names that were probably meant, or all known names.
func DidYouMean(name string, known []string) string {
	return cmp.Or(Meant(name, known), "; there are "+strings.Join(known, ", "))
}

// Meant returns the question whether the user meant one of the known names, or "" if name is
// similar to none of them.
func Meant(name string, known []string) string {
	// The shortest names are within two letters of many others, and prefixes of many more.
	const most = 3
	if near := nearest(name, known); 0 < len(near) && len(near) <= most {
		return ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// nearest returns the known names that cobra suggests for a command of this name: those that
// differ in one letter, or else in two, and those that begin with name.
func nearest(name string, known []string) (near []string) {
	names := cobra.Command{}
	for _, k := range known {
		names.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	for names.SuggestionsMinimumDistance = 1; len(near) == 0 && names.SuggestionsMinimumDistance <= 2; names.SuggestionsMinimumDistance++ {
		near = names.SuggestionsFor(name)
	}
	slices.Sort(near)
	return slices.Compact(near)
}
