package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Arguments are flags of a component with their values, by name without dashes.
type Arguments map[string]string

// additive lists flags whose default values the cluster needs. Over appends the user's values to them.
var additive = []string{"enable-admission-plugins", "controllers"}

// Over returns args in which the values of a replace the values of the same flags, and then the further flags
// of a, sorted.
func (a Arguments) Over(args []string) []string {
	all := slices.Clone(args)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		at := slices.IndexFunc(all,
			func(arg string) bool { return arg == "--"+name || strings.HasPrefix(arg, "--"+name+"=") })
		switch {
		case at < 0:
			all = append(all, "--"+name+"="+a[name])
		case slices.Contains(additive, name):
			all[at] += "," + a[name]
		default:
			all[at] = "--" + name + "=" + a[name]
		}
	}
	return all
}

// parseGates reads arguments that are true or false.
func parseGates(s string) (map[string]bool, error) {
	given, err := parseArguments(s, "\n,")
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for name, raw := range given {
		if all[name], err = strconv.ParseBool(raw); err != nil {
			return nil, fmt.Errorf("%s=%s must be true or false", name, raw)
		}
	}
	return all, nil
}

// asJSON returns a mapping with sorted names; "" if it is empty.
func asJSON[M ~map[string]V, V any](m M) string {
	if len(m) == 0 {
		return ""
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // of values that were read from text
	}
	return string(data)
}

// parseLines reads arguments that only lines separate.
func parseLines(text string) (Arguments, error) { return parseArguments(text, "\n") }

// parseArguments reads one mapping or NAME=VALUE from each line. Separators are the characters that end a
// NAME=VALUE.
func parseArguments(text, separators string) (Arguments, error) {
	all := Arguments{}
	for line := range strings.SplitSeq(text, "\n") {
		given := Arguments{}
		var err error
		if strings.HasPrefix(strings.TrimSpace(line), "{") {
			err = yaml.Unmarshal([]byte(line), &given)
		} else {
			err = given.add(strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(separators, r) }))
		}
		if err != nil {
			return nil, fmt.Errorf("must be NAME=VALUE without dashes, such as v=4, or names with single values: " +
				"{v: 4}")
		}
		maps.Copy(all, given)
	}
	return all, nil
}

func (a Arguments) add(words []string) error {
	for _, word := range words {
		if strings.TrimSpace(word) == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(word), "=")
		if !ok || name == "" || strings.HasPrefix(name, "-") {
			return fmt.Errorf("%q is no NAME=VALUE", word)
		}
		a[name] = value
	}
	return nil
}
