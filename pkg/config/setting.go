package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// Verb is a set of commands that take a setting as a flag.
type Verb uint

// The commands with settings. Every stands for the config commands.
const (
	Master Verb = 1 << iota
	Worker
	Turndown
	Preflight
	Status
	Token
	Offline
	Push
	Bootstrap
	ClusterUp // cluster up
	Named     // verbs on a cluster that is there
	BareHosts // cluster hosts
	Engine    // verbs on one of its nodes
	NodeAdd   // node add
	Clean     // cluster clean
	Build     // verbs that build Kubernetes from source
	Sign      // verbs that write a bundle
	Pull      // offline pull
	Restore   // restore of a backup
	Every

	both          = Master | Worker | Preflight
	hosts         = both | ClusterUp
	ofAHost       = both | Restore
	loads         = both | Bootstrap | Restore
	pulls         = both | Pull
	controlPlanes = Master | Preflight | ClusterUp // with components of control planes
)

// Setting is one row of the table.
type Setting struct {
	Field   string    // name in the file; Config has a field of this name, apart from upper case
	Flag    string    // without dashes
	Group   FlagGroup // where the help of a command lists the flag
	Env     string    // the name the old scripts had for it; may be empty
	Also    []string  // other flags that mean the same
	Default string    // empty: detected, derived or nothing
	Help    string    // one sentence, no full stop
	Values  []string  // if only these are allowed
	Verbs   Verb
	Change  Mutability // whether a later run may change it
	Shared  bool       // the same on all hosts of a cluster; a joining host gets it from a control plane
	Secret  bool       // never printed, never saved
	NoFlag  bool       // a secret that must not appear in the output of `ps`
	Unsaved bool       // not in the saved settings of a host: those of the registry are in a file of their own
	// Holds is the secret that the file of that name holds.
	Holds string

	as    func(field any) value  // nil: the kind that the type of the field has
	shown func(string) string    // returns what may be printed of a value; nil: all of it
	check func(field any) string // says what a value that is set must be, or nothing if it is; see on
}

// EnvNames returns the environment variables of s, the strongest first.
func (s Setting) EnvNames() []string {
	names := []string{EnvName(s.Flag)}
	for _, flag := range s.Also {
		names = append(names, EnvName(flag))
	}
	if s.Env != "" {
		names = append(names, s.Env)
	}
	return names
}

// EnvPrefix begins the names of the variables of all flags.
const EnvPrefix = "KUBE_BOOTSTRAP_"

// EnvName returns the environment variable that stands for a flag.
func EnvName(flag string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Settings returns the settings that verb takes, in the order of the table.
func Settings(verb Verb) []Setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool { return verb != Every && s.Verbs&verb == 0 })
}

// sharing returns the rows with the columns that all of them share, unless a row states a value of its own. The
// path of a file is never shared among hosts.
func sharing(columns Setting, rows []Setting) []Setting {
	for i := range rows {
		row := &rows[i]
		row.Group, row.Unsaved, row.Shared = columns.Group, columns.Unsaved, columns.Shared && row.Holds == ""
		row.Verbs, row.Change = cmp.Or(row.Verbs, columns.Verbs), cmp.Or(row.Change, columns.Change)
	}
	return rows
}

// Find returns the setting with a name in the file.
func Find(field string) (Setting, bool) {
	for _, s := range settings {
		if s.Field == field {
			return s, true
		}
	}
	return Setting{}, false
}

// Kind returns what kind of value a setting has: "string", "bool", "int", "duration", "list", "mapping",
// "arguments" or "gates".
func (s Setting) Kind() string { return s.at(&Config{}).kind }

// Get returns the value of a setting as text.
func (s Setting) Get(c Config) string { return s.at(&c).get() }

// Set changes the value of a setting. The error says what the text must be. YAML, in which settings are kept
// and handed to other hosts, has no bytes that are not UTF-8.
func (s Setting) Set(c *Config, raw string) error {
	if !s.Secret && !utf8.ValidString(raw) {
		return errors.New("must be text in UTF-8")
	}
	return s.at(c).set(raw)
}

// Must returns what the value of a setting must be if it is invalid, and "" if it is valid or not set.
func (s Setting) Must(c Config) string {
	v := s.at(&c)
	if s.check == nil || v.get() == "" {
		return ""
	}
	return s.check(v.field)
}

// Masked returns what may be printed of a value: a word stands for a secret.
func (s Setting) Masked(raw string) string {
	switch {
	case s.Secret:
		return "(hidden)"
	case s.shown != nil:
		return s.shown(raw)
	}
	return raw
}

// IsSetting reports whether a flag of that name is a setting's.
func IsSetting(flag string) bool { return GroupOf(flag) != "" }

// FlagGroup is a heading in the help of a command.
type FlagGroup string

// The groups of flags, in the order in which a help text shows them.
const (
	GroupMachines   FlagGroup = "Machines"
	GroupContainers FlagGroup = "Cluster of containers"
	GroupJoin       FlagGroup = "Joining a cluster"
	GroupCluster    FlagGroup = "Kubernetes"
	GroupComponents FlagGroup = "Components of Kubernetes"
	GroupNetwork    FlagGroup = "Network"
	GroupHost       FlagGroup = "Host and node"
	GroupImages     FlagGroup = "Images"
	GroupRegistry   FlagGroup = "Private registry"
)

// Groups are all groups.
var Groups = []FlagGroup{GroupMachines, GroupContainers, GroupJoin, GroupCluster, GroupComponents, GroupNetwork,
	GroupHost, GroupImages, GroupRegistry}

// GroupOf returns the group of a flag; "" if it is no setting.
func GroupOf(flag string) FlagGroup {
	for _, s := range settings {
		if s.Flag == flag {
			return s.Group
		}
	}
	return ""
}

// Args returns the settings of verb as flags for kube-bootstrap on another machine, without settings that have
// their default. It omits secrets, paths of this machine, and settings of a single machine.
func (c Config) Args(verb Verb, given Origins) []string {
	var args []string
	for _, s := range Settings(verb) {
		mine := s.Verbs&ClusterUp == 0 &&
			!slices.ContainsFunc(nodeSettings, func(n Setting) bool { return n.Field == s.Field })
		raw := s.at(&c).get()
		usual := given[s.Field].Source == FromDefault && (s.Default == "" || raw == s.Default)
		if mine || usual || s.Secret || s.Holds != "" ||
			slices.Contains([]string{"bundle", "bundleBase", "verifyKey", "masterIP"}, s.Field) {
			continue
		}
		args = append(args, "--"+s.Flag+"="+raw)
	}
	return args
}

// Suggestion names the field that was probably meant by a flag, variable or field.
func Suggestion(name string) string {
	var fields []string
	for _, s := range settings {
		if name == s.Flag || name == s.Env {
			return fmt.Sprintf(", did you mean %s?", s.Field)
		}
		fields = append(fields, s.Field)
	}
	return cmp.Or(spelling.Meant(name, fields), "; `kube-bootstrap config init` prints all there are")
}
