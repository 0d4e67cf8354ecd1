package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// Explanation is everything that the table says about a setting.
type Explanation struct {
	Field     string   `json:"field"`
	Type      string   `json:"type"`
	Meaning   string   `json:"meaning"`
	Default   string   `json:"default,omitempty"`
	Values    []string `json:"values,omitempty"`
	Flag      string   `json:"flag,omitempty"`
	Variables []string `json:"variables"`
	MayChange string   `json:"mayChange"`
	Shared    bool     `json:"shared"` // the same on all hosts of a cluster
	Secret    bool     `json:"secret"` // never printed or saved
}

// Explain returns the explanations of a field, or of all fields of a block. An
// empty name stands for all fields.
func Explain(name string) ([]Explanation, error) {
	var all []Explanation
	for _, s := range config.Settings(config.Every) {
		if name == "" || name == s.Field || name == s.Flag || slices.Contains(s.EnvNames(), name) || strings.HasPrefix(s.Field, name+".") {
			all = append(all, explain(s))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q is no field of a configuration file%s", name, config.Suggestion(name))
	}
	return all, nil
}

func explain(s config.Setting) Explanation {
	e := Explanation{
		Field: s.Field, Type: s.Kind(), Meaning: s.Help, Default: s.Default, Values: s.Values,
		Flag: "--" + s.Flag, Variables: s.EnvNames(), MayChange: string(s.Change), Shared: s.Shared, Secret: s.Secret,
	}
	if s.NoFlag {
		e.Flag = ""
	}
	return e
}

// Fields returns the names of all fields.
func Fields() []string {
	var all []string
	for _, s := range config.Settings(config.Every) {
		all = append(all, s.Field)
	}
	return all
}
