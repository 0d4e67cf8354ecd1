package config

import "slices"

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
