package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// manifestsOf lists the manifests that are files of this machine, and has the
// settings name them as hosts find them.
func manifestsOf(cfg *config.Config) (all []cluster.Manifest) {
	hand := func(path, name string) string {
		if !config.IsManifest(path) {
			return path
		}
		on := "/etc/kube-bootstrap-manifests/" + name + ".yaml"
		all = append(all, cluster.Manifest{Path: path, On: on})
		return on
	}
	cfg.CNIPlugin = hand(cfg.CNIPlugin, "network")
	cfg.Addons = slices.Clone(cfg.Addons)
	for i, name := range cfg.Addons {
		cfg.Addons[i] = hand(name, fmt.Sprintf("addon-%d", i+1))
	}
	return all
}

// checkManifests reads each before there is a host.
func checkManifests(all []cluster.Manifest) error {
	var errs []error
	for _, m := range all {
		text, err := os.ReadFile(m.Path)
		if err == nil {
			err = addon.CheckManifest(text)
		}
		if err != nil {
			errs = append(errs, &step.Problem{Name: "manifest", Text: fmt.Sprintf("manifest %s: %v", m.Path, err), Remedy: "give the path of a manifest"})
		}
	}
	return errors.Join(errs...)
}
