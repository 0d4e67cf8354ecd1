package config

import (
	"slices"
	"strings"
)

// Made is what a cluster was created with, by the fields of the file. It is
// kept with the cluster as JSON. A field that it lacks, or that this program
// does not know, is not compared: a program with more settings, or with other
// defaults, finds the same cluster.
type Made struct {
	Given    map[string]string `json:"given,omitempty"`    // values that the user gave
	Defaults map[string]string `json:"defaults,omitempty"` // all other values, as the program had them then
}

// Name is how the user wrote the setting.
func (d Difference) Name() string { return nameOf(d.Setting, d.From) }

// describing are the settings of `cluster up` that say what the cluster is, but
// for its nodes, which pkg/cluster knows.
func describing() []Setting {
	return slices.DeleteFunc(Settings(Fleet), func(s Setting) bool {
		return s.Change == EachRun || slices.Contains([]string{"name", "bundle", "masters", "workers"}, s.Field)
	})
}

// changes reports whether `cluster up` changes a setting of a cluster. Versions
// are changed host by host.
func (s Setting) changes() bool { return s.Change != Never && !strings.HasSuffix(s.Field, "Version") }

// Made returns what a cluster is created with that has these settings.
func (c Config) Made(origins Origins) Made {
	m := Made{Given: map[string]string{}, Defaults: map[string]string{}}
	for _, s := range describing() {
		if origins[s.Field].Source == FromDefault {
			m.Defaults[s.Field] = s.at(&c).get()
		} else {
			m.Given[s.Field] = s.at(&c).get()
		}
	}
	return m
}

// WithMade gives each setting about which nothing was said now the value that
// the cluster was created with. It returns the settings that were given now with
// another value, but for those that a cluster can change.
func (c Config) WithMade(m Made, origins Origins) (Config, []Difference) {
	var all []Difference
	if origins["dnsServerIP"].Source == FromDefault {
		c.DNSServerIP = "" // derived again, from the service network of the cluster
	}
	for _, s := range describing() {
		was, given := m.Given[s.Field]
		if !given {
			was, given = m.Defaults[s.Field]
			if !given || origins[s.Field].Source == FromDefault && s.Default == "" {
				continue // derived from other settings
			}
		}
		now := s.at(&c).get()
		switch {
		case origins[s.Field].Source == FromDefault:
			if _, given := m.Given[s.Field]; given {
				origins[s.Field] = Origin{FromCluster, ""}
			}
			_ = s.at(&c).set(was) // it was checked when the cluster was created; Validate checks it again
		case was != now && !s.changes():
			all = append(all, Difference{s, now, was, origins[s.Field]})
		}
	}
	return c.complete(), all
}

// nameOf is how the user wrote a setting: a flag, a variable, or a field with
// its place in the file.
func nameOf(s Setting, from Origin) string {
	if from.Source == FromFile {
		return s.Field + " (" + from.Where + ")"
	}
	return from.Where
}

// Said is how the user wrote a setting; "" if nothing was said about it.
func (o Origins) Said(field string) string {
	if o[field].Source <= FromCluster {
		return ""
	}
	return nameOf(Setting{Field: field}, o[field])
}

// Includes reports whether a cluster that was created with m has all of now. What
// m does not know it does not lack.
func (m Made) Includes(now Made) bool {
	for _, values := range []map[string]string{now.Given, now.Defaults} {
		for field, value := range values {
			was, given := m.Given[field]
			if !given {
				was, given = m.Defaults[field]
			}
			if given && was != value {
				return false
			}
		}
	}
	return true
}

// Remembered drops the manifests that the cluster was created with: its hosts
// keep them, and here they may be gone. It is for a cluster that stays.
func (c Config) Remembered(origins Origins) Config {
	for _, field := range []string{"addons", "cniPlugin"} {
		if s, _ := byField(field); origins[field].Source == FromCluster {
			_ = s.at(&c).set(s.Default)
			delete(origins, field)
		}
	}
	return c
}
