// Package spelling finds the names that a user probably meant.
package spelling

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// DidYouMean returns the known names that were probably meant, or all known names.
func DidYouMean(name string, known []string) string {
	return cmp.Or(Meant(name, known), "; there are "+strings.Join(known, ", "))
}

// Meant returns the question whether the user meant one of the known names, or "" if name is
// similar to none of them.
func Meant(name string, known []string) string {
	const most = 3 // a short name is similar to many names, and a list of these does not help
	if near := nearest(name, known); 0 < len(near) && len(near) <= most {
		return ", did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// nearest returns the known names that are similar to name, as cobra compares the names of
// commands. A name is similar if it begins with name, or if it differs from name in one letter.
// If there is none, a difference of two letters is accepted.
func nearest(name string, known []string) (near []string) {
	names := cobra.Command{}
	for _, k := range known {
		names.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	for _, letters := range []int{1, 2} {
		names.SuggestionsMinimumDistance = letters
		if near = names.SuggestionsFor(name); len(near) > 0 {
			break
		}
	}
	slices.Sort(near)
	return slices.Compact(near)
}
