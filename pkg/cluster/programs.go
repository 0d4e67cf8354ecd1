package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
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

// programsName is what the hosts call the bundle of noted programs. It is another
// one for others: a host that was not concerned, or was put back to how it was,
// is not taken for one that lacks something.
func programsName(note string) string {
	sum := sha256.Sum256([]byte(note))
	return "programs-" + hex.EncodeToString(sum[:6]) + ".tar.zst"
}

// dropOldPrograms removes bundles that no run will ask for any more.
func (f *fleet) dropOldPrograms(ctx context.Context, on member) error {
	keep := programsName(f.programs)
	if f.docker.Remote() {
		return f.node(on).Exec(ctx, driver.Exec{Args: []string{"find", bundleDir, "-name", "programs-*", "!", "-name", keep, "-delete"}})
	}
	all, err := filepath.Glob(filepath.Join(f.sharedDir(), "programs-*"))
	for _, path := range all {
		if filepath.Base(path) != keep {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
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
	return filepath.Join(o.CacheDir, "clusters", o.Name+"-programs.tar.zst")
}

// findPrograms finds out whether the cluster has programs of its own. Those it
// has are of use only with the bundle that they were built on.
func (f *fleet) findPrograms(ctx context.Context) error {
	notes, err := f.docker.Notes(ctx, f.Name)
	f.programs = notes[programsKey]
	switch {
	case f.Programs.Bundle != "":
		f.programs = f.Programs.note()
	case f.programs != "":
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
	err = withCluster(ctx, options, func(f *fleet) error {
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
	return versions, nil
}

func fileThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
