package catalog

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// FlagList contains the names that the components of one minor version accept.
type FlagList struct {
	Flags map[string][]string `json:"flags"`           // by component, "kube-apiserver"
	Gates []string            `json:"gates,omitempty"` // feature gates
}

// lists are what the components of each minor version print with --help; `make
// flags` writes them.
//
//go:embed flags/*.json
var lists embed.FS

// FlagFile returns the name of the list of a component and a minor version.
func FlagFile(component, minor string) string {
	if component != "etcd" {
		component = "kubernetes"
	}
	return component + "-" + minor + ".json"
}

var flagLists sync.Map // by file

func flagList(component, minor string) (FlagList, error) {
	file := FlagFile(component, minor)
	if list, ok := flagLists.Load(file); ok {
		return list.(FlagList), nil
	}
	var list FlagList
	data, err := lists.ReadFile("flags/" + file)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return list, fmt.Errorf("the names that %s %s accepts are not known", component, minor)
	}
	flagLists.Store(file, list)
	return list, nil
}

// KnownFlags returns the names of the flags that a component of a release
// accepts, without dashes.
func KnownFlags(component, release string) ([]string, error) {
	list, err := flagList(component, minorOf(release))
	return list.Flags[component], err
}

// KnownGates returns the alpha and beta feature gates of a Kubernetes release.
// The components hide the other gates, which will be removed.
func KnownGates(release string) ([]string, error) {
	list, err := flagList("kubernetes", minorOf(release))
	return list.Gates, err
}

// minorOf returns the minor version of a release: 1.37 for v1.37.2.
func minorOf(release string) string {
	parts := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Listed returns the minor versions of Kubernetes whose flags are known.
func Listed() []string {
	var all []string
	for _, m := range minors {
		if _, err := flagList("kubernetes", m.String()); err == nil {
			all = append(all, m.String())
		}
	}
	return all
}
