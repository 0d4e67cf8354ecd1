package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// settings are what a cluster was made with, by the names of Options' fields.
// They are noted on the engine once the cluster is up, so that a later run
// knows whether it is asked for the same one.
type settings map[string]json.RawMessage

// settingsKey is that of their note.
const settingsKey = "settings"

// elsewhere are the fields that say nothing about the cluster, but where it is
// made and from what file.
var elsewhere = []string{"Name", "Retain", "Engine", "CacheDir", "Bundle", "Programs", "FirstSnapshot", "KeepImages"}

func (o Options) settings() (settings, error) {
	program, err := sumOf(o.Binary)
	if err != nil {
		return nil, err
	}
	o.Binary = program
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	all := settings{}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for _, name := range elsewhere {
		delete(all, name)
	}
	return all, nil
}

// program is the field that may differ without the cluster being another one.
const program = "Binary"

// differ says which settings are other ones, "" if none.
func (s settings) differ(now settings) string {
	names := maps.Clone(now)
	maps.Copy(names, s)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if name != program && string(s[name]) != string(now[name]) {
			all = append(all, fmt.Sprintf("%s was %s and is %s", name, said(s[name]), said(now[name])))
		}
	}
	return strings.Join(all, ", ")
}

func said(value json.RawMessage) string {
	if len(value) == 0 || string(value) == "null" {
		return "not set"
	}
	return strings.Trim(string(value), `"`)
}

func (s settings) version() (v string) {
	_ = json.Unmarshal(s["Kubernetes"], &v) // none: not known
	return v
}

// noted returns the settings of the cluster that was up, none if it never was.
func (f *fleet) noted(ctx context.Context) (settings, error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil || notes[settingsKey] == "" {
		return nil, err
	}
	var s settings
	if err := json.Unmarshal([]byte(notes[settingsKey]), &s); err != nil {
		return nil, fmt.Errorf("settings of cluster %s: %w", f.Name, err)
	}
	return s, nil
}

func (f *fleet) noteSettings(ctx context.Context, s settings) error {
	word, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return f.docker.Note(ctx, f.Name, settingsKey, string(word))
}
