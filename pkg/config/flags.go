package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

const ownPrefix = "KUBE_BOOTSTRAP_"

func cutOwn(name string) (string, bool) { return strings.CutPrefix(name, ownPrefix) }

// flagValue keeps what was typed. Load reads it, so that a bad flag is told
// together with everything else that is bad.
type flagValue struct {
	typed string
	kind  string
	set   bool
}

func (f *flagValue) String() string { return f.typed }
func (f *flagValue) Type() string   { return f.kind }

// Set replaces the value; a list grows each time its flag is given.
func (f *flagValue) Set(s string) error {
	if f.kind == "list" && f.set {
		s = f.typed + "," + s
	}
	f.typed, f.set = s, true
	return nil
}

// AddFlags adds the flags of the settings that verb takes.
func AddFlags(flags *pflag.FlagSet, verb Verb) {
	for _, s := range Settings(verb) {
		if s.NoFlag {
			continue
		}
		help := s.Help
		if len(s.Values) > 0 {
			help += ": " + strings.Join(s.Values, ", ")
		}
		kind := s.at(&Config{}).kind
		f := flags.VarPF(&flagValue{typed: s.Default, kind: kind}, s.Flag, "", help)
		if kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// Args returns the settings of verb that were given, as flags for a program on
// another machine. Secrets and paths of this machine are left out.
func (c Config) Args(verb Verb, given Origins) []string {
	var args []string
	for _, s := range Settings(verb) {
		if given[s.Field].Source == FromDefault || s.Secret || s.Holds != "" || slices.Contains([]string{"bundle", "bundleBase", "verifyKey", "masterIP"}, s.Field) {
			continue
		}
		args = append(args, "--"+s.Flag+"="+s.at(&c).get())
	}
	return args
}
