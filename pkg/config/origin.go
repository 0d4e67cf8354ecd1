package config

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Source is one of the places a value can come from; the greater wins.
type Source int

// The places, weakest first.
const (
	FromDefault Source = iota
	FromHost           // the saved settings of this host
	FromCluster        // the recorded settings of the cluster
	FromFile
	FromEnvironment
	FromFlag
)

// Origin says where a value came from.
type Origin struct {
	Source Source
	Where  string // a flag, a variable, file:line
}

func (o Origin) String() string {
	switch o.Source {
	case FromFlag:
		return "flag " + o.Where
	case FromEnvironment:
		return "environment " + o.Where
	case FromFile:
		return "file " + o.Where
	case FromHost:
		return "the settings of this host, " + o.Where
	case FromCluster:
		return "the settings of the cluster"
	}
	return "default"
}

// Origins holds the origin of each field, by its name in the file.
type Origins map[string]Origin

// FromFile reports whether a value comes from a file that was named.
func (o Origins) FromFile() bool {
	for _, from := range o {
		if from.Source == FromFile {
			return true
		}
	}
	return false
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
