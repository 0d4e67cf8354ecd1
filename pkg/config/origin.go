package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Precedence is one of the places a value can come from; the greater wins.
type Precedence int

// The places, weakest first.
const (
	FromDefault Precedence = iota
	FromHost               // the saved settings of this host
	FromCluster            // the recorded settings of the cluster
	FromFile
	FromEnvironment
	FromFlag
)

// Origin says where a value came from.
type Origin struct {
	Source Precedence
	Where  string // a flag, a variable, file:line
}

// sources describes each source. The text of Where follows.
var sources = map[Precedence]string{
	FromDefault: "default", FromHost: "the settings of this host, ", FromCluster: "the settings of the cluster",
	FromFile: "file ", FromEnvironment: "environment ", FromFlag: "flag ",
}

func (o Origin) String() string { return sources[o.Source] + o.Where }

// Origins holds the origin of each field, by its name in the file.
type Origins map[string]Origin

// FromFile reports whether a value comes from a file that was named.
func (o Origins) FromFile() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(o)),
		func(from Origin) bool { return from.Source == FromFile })
}

// Tell joins errors about fields, each with where its value came from.
func (o Origins) Tell(errs field.ErrorList) error {
	var all []error
	for _, e := range errs {
		if from := o[e.Field]; from.Source != FromDefault {
			all = append(all, fmt.Errorf("%w (from %s)", e, from))
		} else {
			all = append(all, e)
		}
	}
	return errors.Join(all...)
}
