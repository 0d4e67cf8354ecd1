package source

import (
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// flagValue contains the text of a flag. Load parses it, so that an invalid flag is reported
// together with all other errors.
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

// IsSetting reports whether a flag is one of AddFlags, which Load reads.
func IsSetting(f *pflag.Flag) bool {
	_, ours := f.Value.(*flagValue)
	return ours
}

// AddFlags adds the flags of the settings that verb takes.
func AddFlags(flags *pflag.FlagSet, verb config.Verb) {
	flags.SetNormalizeFunc(oneName)
	for _, s := range config.Settings(verb) {
		if s.NoFlag {
			continue
		}
		help := s.Help
		if len(s.Values) > 0 {
			help += ": " + strings.Join(s.Values, ", ")
		}
		kind := s.Kind()
		f := flags.VarPF(&flagValue{typed: s.Default, kind: kind}, s.Flag, "", help)
		if kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// oneName returns the listed name of a flag for its alias. pflag calls it for each
// use of a flag, thousands of times before a command starts.
func oneName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if listed, ok := listedNames()[name]; ok {
		return pflag.NormalizedName(listed)
	}
	return pflag.NormalizedName(name)
}

// listedNames returns the listed names of all flags by their aliases.
var listedNames = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, s := range config.Settings(config.Every) {
		for _, alias := range s.Also {
			names[alias] = s.Flag
		}
	}
	return names
})
