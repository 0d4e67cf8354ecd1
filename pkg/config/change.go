package config

// Change says what a later run may do to a setting of a host that is set up.
type Change int

// How far a setting may change.
const (
	unstated Change = iota // no row may leave it out
	// Never: the cluster, or the place of the host in it, was made with it.
	Never
	// NeverOnMaster is Never on a control plane. The next worker applies it.
	NeverOnMaster
	// Freely: the next run of the command applies it.
	Freely
	// OnCluster: likewise, and the hosts of a cluster must agree.
	OnCluster
	// EachRun belongs to one run or to joining: there is nothing to change.
	EachRun
)

func (c Change) String() string {
	switch c {
	case Never:
		return "no"
	case NeverOnMaster:
		return "on a worker"
	case Freely:
		return "yes"
	case OnCluster:
		return "yes, on all hosts"
	case EachRun:
		return "not kept"
	}
	return "unstated"
}

// Difference is a setting that was given another value than the one in force,
// which stays.
type Difference struct {
	Setting
	Given, InForce string
	From           Origin // of the value that was given
}

// FixedFor reports for a setting whether it stays as it is on a host that is
// set up with that role.
func FixedFor(role string) func(Setting) bool {
	return func(s Setting) bool { return s.Change == Never || s.Change == NeverOnMaster && role == RoleMaster }
}

// SharedFixed reports whether a setting is the cluster's and stays as it is.
func SharedFixed(s Setting) bool { return s.Shared && s.Change == Never }

// IsShared reports whether all hosts of a cluster have the same value.
func IsShared(s Setting) bool { return s.Shared }

// Keep returns c with the values that inForce has for some settings, and the
// differences of those that somebody gave another value: a default asks for
// nothing.
func (c Config) Keep(some func(Setting) bool, inForce Config, given Origins) (Config, []Difference) {
	var differences []Difference
	for _, s := range settings {
		now, old := s.at(&c), s.at(&inForce).get()
		if !some(s) || now.get() == old {
			continue
		}
		if from := given[s.Field]; from.Source > FromHost {
			differences = append(differences, Difference{s, s.masked(now.get()), s.masked(old), from})
		}
		_ = now.set(old) // a value that was accepted before
	}
	return c, differences
}
