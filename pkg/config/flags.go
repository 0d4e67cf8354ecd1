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

// separators are what stands between the values of a flag that was given several
// times. Other flags keep the last value.
var separators = map[string]string{"list": ",", "arguments": "\n", "gates": "\n"}

// Set replaces the value; a list grows each time its flag is given.
func (f *flagValue) Set(s string) error {
	if separator := separators[f.kind]; separator != "" && f.set {
		s = f.typed + separator + s
	}
	f.typed, f.set = s, true
	return nil
}

// AddFlags adds the flags of the settings that verb takes.
func AddFlags(flags *pflag.FlagSet, verb Verb) {
	flags.SetNormalizeFunc(oneName)
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

// Args returns the settings of verb as flags for kube-bootstrap on another
// machine, without settings that have their default. It omits secrets, paths of
// this machine, and settings of a single machine.
func (c Config) Args(verb Verb, given Origins) []string {
	var args []string
	for _, s := range Settings(verb) {
		mine := s.Verbs&ClusterUp == 0 && !slices.ContainsFunc(nodeSettings, func(n Setting) bool { return n.Field == s.Field })
		raw := s.at(&c).get()
		usual := given[s.Field].Source == FromDefault && (s.Default == "" || raw == s.Default)
		if mine || usual || s.Secret || s.Holds != "" || slices.Contains([]string{"bundle", "bundleBase", "verifyKey", "masterIP"}, s.Field) {
			continue
		}
		args = append(args, "--"+s.Flag+"="+raw)
	}
	return args
}

// oneName returns the listed name of a flag for its alias.
func oneName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	for _, s := range settings {
		if slices.Contains(s.Also, name) {
			return pflag.NormalizedName(s.Flag)
		}
	}
	return pflag.NormalizedName(name)
}
