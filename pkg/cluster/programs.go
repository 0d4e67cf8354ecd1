package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Programs are those of Kubernetes that were built from a checkout.
type Programs struct {
	Bundle   string            // has their images, and is built on Options.Bundle; "": there is none
	Versions map[string]string // of those that differ from the release's
}

// programsKey is that of the note with the versions that a cluster has, or is
// about to get.
const programsKey = "programs"

func (p Programs) note() string {
	word, err := json.Marshal(p.Versions)
	if err != nil {
		panic(err) // strings only
	}
	return string(word)
}

// areThose reports whether p asks for nothing else than what was noted.
func (p Programs) areThose(note string) bool { return p.Bundle == "" || note == p.note() }

// ProgramsPath is where the bundle of a cluster's programs is written, before
// its hosts get it. Clean removes it.
func ProgramsPath(options Options) (string, error) {
	o, err := options.withDefaults()
	return o.programsPath(), err
}

func (o Options) programsPath() string {
	return filepath.Join(o.CacheDir, "clusters", o.Name+"."+programsName)
}

// findPrograms finds out whether the cluster has programs of its own. Those it
// has are of use only with the bundle that they were built on.
func (f *fleet) findPrograms(ctx context.Context) error {
	notes, err := f.docker.Notes(ctx, f.Name)
	had := notes[programsKey] != ""
	f.hasPrograms = had || f.Programs.Bundle != ""
	if had && f.Programs.Bundle == "" {
		f.Bundle, f.shipped = "", true
	}
	return err
}

// notePrograms is the step that remembers which programs the cluster has from
// now on, for nodes that are added, and for runs that follow one that is killed.
func (f *fleet) notePrograms() step.Step {
	if f.Programs.Bundle == "" {
		return step.Step{}
	}
	return step.Step{
		Name: "remember the programs of the checkout",
		Check: func(ctx context.Context) (step.Diff, error) {
			notes, err := f.docker.Notes(ctx, f.Name)
			if err != nil || f.Programs.areThose(notes[programsKey]) {
				return nil, err
			}
			return step.Diff{"note the versions of the programs"}, nil
		},
		Apply: func(ctx context.Context) error { return f.docker.Note(ctx, f.Name, programsKey, f.Programs.note()) },
	}
}

// Made is what a cluster that is up was made of.
type Made struct {
	Kubernetes string            // its version
	Programs   map[string]string // versions of those that were built from a checkout
	Bundle     string            // the one that its hosts have loaded; "": it is not on this machine
}

// WhatIsUp says what a cluster that is up was made of.
func WhatIsUp(ctx context.Context, options Options) (made Made, err error) {
	err = withFleet(ctx, options, func(f *fleet) error {
		if _, err := f.firstMaster(ctx, ""); err != nil {
			return err
		}
		settings, err := f.noted(ctx)
		if err != nil {
			return err
		}
		if made.Kubernetes = settings.version(); made.Kubernetes == "" {
			return &step.Problem{Name: "cluster-unfinished", Text: "cluster " + f.Name + " has never been up", Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "` first"}
		}
		made.Programs, err = f.notedPrograms(ctx)
		if path := filepath.Join(f.sharedDir(), bundleName); fileThere(path) {
			made.Bundle = path
		}
		return err
	})
	return made, err
}

func (f *fleet) notedPrograms(ctx context.Context) (map[string]string, error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil || notes[programsKey] == "" {
		return nil, err
	}
	versions := map[string]string{}
	if err := json.Unmarshal([]byte(notes[programsKey]), &versions); err != nil {
		return nil, fmt.Errorf("programs of cluster %s: %w", f.Name, err)
	}
	return maps.Clone(versions), nil
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
