package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"
)

// ClusterRecord holds the settings that a cluster was created with, keyed by the fields of the configuration
// file. It is stored with the cluster as JSON. A field that is missing in it, or unknown to this program, is
// not compared, so that a program with more settings or other defaults accepts the same cluster.
type ClusterRecord struct {
	Given    map[string]string `json:"given,omitempty"`    // values given by the user
	Defaults map[string]string `json:"defaults,omitempty"` // all other values, as the program set them at that time
}

// Name returns the setting as the user wrote it.
func (d Difference) Name() string { return d.From.nameOf(d.Field) }

// describing returns the settings of `cluster up` that define the cluster, except its nodes, which pkg/cluster
// compares.
func describing() []Setting {
	return slices.DeleteFunc(Settings(ClusterUp), func(s Setting) bool {
		return s.Change == EachRun || slices.Contains([]string{"name", "bundle", "masters", "workers"}, s.Field)
	})
}

// changes reports whether `cluster up` can change a setting of an existing cluster. It does not change
// versions; the host verbs do, one host at a time.
func (s Setting) changes() bool { return s.Change != Never && !strings.HasSuffix(s.Field, "Version") }

// Value returns the value of a setting; "" if it is not recorded.
func (m ClusterRecord) Value(field string) string {
	value, _ := m.recorded(field)
	return value
}

// Change replaces the recorded value of a setting. A setting that is not recorded stays so.
func (m ClusterRecord) Change(field, value string) {
	for _, values := range []map[string]string{m.Given, m.Defaults} {
		if _, found := values[field]; found {
			values[field] = value
		}
	}
}

func (m ClusterRecord) recorded(field string) (value string, found bool) {
	if value, found = m.Given[field]; !found {
		value, found = m.Defaults[field]
	}
	return value, found
}

// Config returns the recorded settings as values; the others are not set. The error names the recorded values
// that this program cannot read.
func (m ClusterRecord) Config() (c Config, err error) {
	var errs []error
	for _, s := range describing() {
		if text, found := m.recorded(s.Field); found {
			if err := s.at(&c).set(text); err != nil {
				errs = append(errs, fmt.Errorf("settings of the cluster: %s: %q: %w", s.Field, s.Masked(text), err))
			}
		}
	}
	return c, errors.Join(errs...)
}

// Record returns these settings as the record of a new cluster.
func (c Config) Record(origins Origins) ClusterRecord {
	m := ClusterRecord{Given: map[string]string{}, Defaults: map[string]string{}}
	for _, s := range describing() {
		values := m.Given
		if origins[s.Field].Source == FromDefault {
			values = m.Defaults
		}
		values[s.Field] = s.Get(c)
	}
	return m
}

// WithRecord sets each setting that was not given to the value that the cluster was created with. A new cluster
// gets extension.NewClusterAddons. It also returns the settings that were given with another value and that an existing
// cluster cannot change. The error is that of Made.Config.
func (c Config) WithRecord(m ClusterRecord, origins Origins) (Config, []Difference, error) {
	recorded, err := m.Config()
	if err != nil {
		return c, nil, err
	}
	var all []Difference
	if origins["dnsServerIP"].Source == FromDefault {
		c.DNSServerIP = netip.Addr{} // derived again, from the service network of the cluster
	}
	if isNew := m.Given == nil && m.Defaults == nil; isNew && origins["addons"].Source == FromDefault {
		c.Addons, origins["addons"] = slices.Clone(extension.NewClusterAddons), Origin{FromCluster, ""}
	}
	for _, s := range describing() {
		_, found := m.recorded(s.Field)
		was, now, unsaid := s.Get(recorded), s.Get(c), origins[s.Field].Source == FromDefault
		_, given := m.Given[s.Field]
		if !found || !given && unsaid && s.Default == "" {
			continue // not recorded, or derived from other settings
		}
		switch {
		case unsaid:
			if given {
				origins[s.Field] = Origin{FromCluster, ""}
			}
			s.in(&c).Set(s.in(&recorded))
		case was != now && !s.changes():
			all = append(all, Difference{s, now, was, origins[s.Field]})
		}
	}
	return c.WithoutUnusedAddresses(origins).Complete(), all, nil
}

// nameOf returns a setting as the user wrote it: a flag, a variable, or a field with its position in the file.
func (o Origin) nameOf(field string) string {
	if o.Source == FromFile {
		return field + " (" + o.Where + ")"
	}
	return o.Where
}

// Said returns a setting as the user wrote it; "" if the user did not give it.
func (o Origins) Said(field string) string {
	if o[field].Source <= FromCluster {
		return ""
	}
	return o[field].nameOf(field)
}

// Includes reports whether a cluster that was created with m has all values of now. A field that m does not
// contain counts as equal.
func (m ClusterRecord) Includes(now ClusterRecord) bool {
	for _, values := range []map[string]string{now.Given, now.Defaults} {
		for field, value := range values {
			if was, found := m.recorded(field); found && was != value {
				return false
			}
		}
	}
	return true
}

// WithoutRecordedFiles resets addons and cniPlugin if their values come from the cluster's record: the
// manifests may no longer exist on this machine, and the hosts have their own copies. With the addons go their
// addresses. Use it only if the cluster is not created again.
func (c Config) WithoutRecordedFiles(origins Origins) Config {
	for _, field := range []string{"addons", "cniPlugin"} {
		if origins[field].Source == FromCluster {
			c = c.Reset(field)
			delete(origins, field)
		}
	}
	return c.WithoutUnusedAddresses(origins)
}
