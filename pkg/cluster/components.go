package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// BuiltComponents are components of Kubernetes that were built from a checkout.
type BuiltComponents struct {
	Bundle   string            // bundle with their images, based on Options.Bundle; "": none
	Versions map[string]string // of the components that differ from the release
}

// note returns the text that records the versions on the engine.
func (c BuiltComponents) note() string {
	text, err := json.Marshal(c.Versions)
	if err != nil {
		panic(err) // strings only
	}
	return string(text)
}

// equal reports whether the requested components, if any, are the recorded ones.
func (c BuiltComponents) equal(note string) bool { return c.Bundle == "" || note == c.note() }

// componentsName returns the name of the bundle with the recorded components in
// the shared directory. Other components have another name, so that a node that
// was not changed, or was restored, still finds its own bundle.
func componentsName(note string) string {
	return "programs-" + digest.FromString(note).Encoded()[:12] + ".tar.zst"
}

// sharedFiles returns the bundles that the hosts get.
func (o Options) sharedFiles() []testhost.SharedFile {
	return slices.DeleteFunc([]testhost.SharedFile{
		{From: o.Bundle, Name: session.BundleName},
		{From: o.Components.Bundle, Name: componentsName(o.Components.note())},
	}, func(file testhost.SharedFile) bool { return file.From == "" })
}

// source describes the bundles from which the nodes load their images.
type source struct {
	shared     bool   // the hosts share a bundle
	components string // note of the components that were built from a checkout; "": none
}

// names returns the names of the bundles in the shared directory. If the first bundle has a base,
// the base is the second.
func (s source) names() []string {
	switch {
	case !s.shared:
		return nil
	case s.components == "":
		return []string{session.BundleName}
	}
	return []string{componentsName(s.components), session.BundleName}
}

func (s source) args() (args []string) {
	for i, name := range s.names() {
		args = append(args, []string{"--bundle", "--bundle-base"}[i], testhost.SharedDir+"/"+name)
	}
	return args
}

// source returns where the nodes load their images from. If the cluster has
// components of its own, they can only be loaded with the bundle that they are
// based on, which the hosts share already: then the returned options have no
// bundle.
func (o Options) source(ctx context.Context, s *session.Session) (Options, source, error) {
	notes, err := s.Notes().All(ctx)
	components := notes[session.ComponentsNote]
	shared := o.Bundle != ""
	switch {
	case o.Components.Bundle != "":
		components = o.Components.note()
	case components != "":
		o.Bundle, shared = "", true
	}
	return o, source{shared, components}, err
}

// noteComponents returns the step that records the components of the cluster,
// for nodes that are added later and for runs that follow a killed one.
func (o Options) noteComponents(s *session.Session) step.Step {
	outdated := func(ctx context.Context) (bool, error) {
		notes, err := s.Notes().All(ctx)
		return !o.Components.equal(notes[session.ComponentsNote]), err
	}
	note := func(ctx context.Context) error {
		return s.Notes().Set(ctx, session.ComponentsNote, o.Components.note())
	}
	return step.When("remember-programs", "remember the programs of the checkout", "note the versions of the programs",
		outdated, note).
		If(o.Components.Bundle != "")
}

// dropOldComponents removes the bundles of former components except those of the notes, also
// on a node if the nodes run on another machine.
func dropOldComponents(ctx context.Context, s *session.Session, notes []string, node string) error {
	var kept []string
	find := []string{"find", testhost.SharedDir, "-name", "programs-*"}
	for _, note := range notes {
		name := componentsName(note)
		kept, find = append(kept, name), append(find, "!", "-name", name)
	}
	if !s.Provider.OnThisMachine() {
		if err := access.Run(ctx, s.Node(node), append(find, "-delete")...); err != nil {
			return err
		}
	}
	all, err := filepath.Glob(filepath.Join(s.SharedDir(), "programs-*"))
	for _, path := range all {
		if !slices.Contains(kept, filepath.Base(path)) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// Installed describes what a cluster that is up was made of.
type Installed struct {
	Kubernetes string            // version
	Components map[string]string // versions of the components that were built from a checkout
	Bundle     string            // the bundle that its hosts loaded; "": this machine does not have it
}

// ReadInstalled returns what a cluster that is up was made of.
func ReadInstalled(ctx context.Context, options session.Selection) (Installed, error) {
	scope := session.Requirements{Needs: session.ACluster}
	return session.Get(ctx, options, scope, func(s *session.Session, _ topology.State) (made Installed, err error) {
		if _, err := s.RunningControlPlane(ctx, ""); err != nil {
			return made, err
		}
		record, err := s.UpRecord(ctx)
		if err != nil {
			return made, err
		}
		if made.Kubernetes = record.Version(); made.Kubernetes == "" {
			return made, &step.Problem{
				Name: "cluster-unfinished", Text: "cluster " + s.Name + " has never been up",
				Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "` first",
			}
		}
		made.Components, err = notedComponents(ctx, s)
		made.Bundle = s.Bundle()
		return made, err
	})
}

func notedComponents(ctx context.Context, s *session.Session) (map[string]string, error) {
	notes, err := s.Notes().All(ctx)
	if err != nil || notes[session.ComponentsNote] == "" {
		return nil, err
	}
	versions := map[string]string{}
	if err := json.Unmarshal([]byte(notes[session.ComponentsNote]), &versions); err != nil {
		return nil, fmt.Errorf("programs of cluster %s: %w", s.Name, err)
	}
	return versions, nil
}
