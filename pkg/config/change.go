package config

// Mutability says whether a later run may change a setting of an installed host, as the docs show it. Every row
// must state one.
type Mutability string

// The values of Change.
const (
	// Never: the cluster, or the host's membership in it, depends on the value.
	Never Mutability = "no"
	// NeverOnControlPlane: a control plane cannot change it; on a worker, the next run applies it.
	NeverOnControlPlane Mutability = "on a worker"
	// Freely: the next run of the command applies it.
	Freely Mutability = "yes"
	// OnCluster: the next run applies it, and all hosts of a cluster must agree.
	OnCluster Mutability = "yes, on all hosts"
	// EachRun: later runs do not use the value, because it applies to a single run or to joining.
	EachRun Mutability = "not saved"
)

// Difference is a setting whose given value differs from the value in force.
type Difference struct {
	Setting
	Given, InForce string
	From           Origin // of the value that was given
}

// FixedFor returns whether a setting cannot change on an installed host of that role.
func FixedFor(role string) func(Setting) bool {
	return func(s Setting) bool {
		return s.Change == Never || s.Change == NeverOnControlPlane && role == RoleControlPlane
	}
}

// SharedFixed reports whether a setting of the whole cluster cannot change.
func SharedFixed(s Setting) bool { return s.Shared && s.Change == Never }

// IsShared reports whether all hosts of a cluster have the same value.
func IsShared(s Setting) bool { return s.Shared }

// WithInForce returns c with the values of inForce for the selected settings. It also returns those settings
// for which a user gave another value; a default value is never a difference.
func (c Config) WithInForce(some func(Setting) bool, inForce Config, given Origins) (Config, []Difference) {
	var differences []Difference
	for _, s := range settings {
		now, old := s.Get(c), s.Get(inForce)
		if !some(s) || now == old {
			continue
		}
		if from := given[s.Field]; from.Source > FromHost {
			differences = append(differences, Difference{s, s.Masked(now), s.Masked(old), from})
		}
		s.in(&c).Set(s.in(&inForce))
	}
	return c, differences
}

// Saved returns c with the default values of the settings that are not saved.
func (c Config) Saved() Config {
	for _, s := range settings {
		if s.Change == EachRun {
			c = c.Reset(s.Field)
		}
	}
	return c
}

// Reset returns c with the default values of some settings.
func (c Config) Reset(fields ...string) Config {
	for _, field := range fields {
		s, _ := Find(field)
		_ = s.at(&c).set(s.Default) // each default is valid
	}
	return c
}
