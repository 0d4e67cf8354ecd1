package file

import "github.com/kube-bootstrap/kube-bootstrap/pkg/config"

// Value is one setting as `config view` shows it.
type Value struct {
	Field  string `json:"field"`
	Env    string `json:"-"` // the name in the old scripts, or our own
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Values lists the settings that verb takes with their origins. Secrets are
// hidden.
func Values(c config.Config, verb config.Verb, origins config.Origins) []Value {
	var all []Value
	for _, s := range config.Settings(verb) {
		names := s.EnvNames()
		v := Value{Field: s.Field, Env: names[len(names)-1], Value: s.Get(c), Origin: origins[s.Field].String()}
		if v.Value != "" {
			v.Value = s.Masked(v.Value)
		}
		if origins[s.Field].Source == config.FromDefault && s.Default == "" && v.Value != "" {
			v.Origin = "derived"
		}
		all = append(all, v)
	}
	if verb == config.Every {
		all = append(all, nodeValues(c.Nodes, origins)...)
	}
	return all
}

// View is Marshal with the origin of each value as a comment.
func View(c config.Config, origins config.Origins) ([]byte, error) {
	from := map[string]string{}
	for _, v := range Values(c, config.Every, origins) {
		from[v.Field] = v.Origin
	}
	root := tree(c, func(s config.Setting) (bool, string) {
		return len(c.Nodes) == 0 || s.Field != "masters" && s.Field != "workers", from[s.Field]
	})
	if len(c.Nodes) > 0 {
		root.Content = append(root.Content, word(config.NodesField), nodesTree(c.Nodes, origins))
	}
	return encodeTree(root)
}
