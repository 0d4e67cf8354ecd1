package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
)

// containerVerbs are the commands about clusters of containers. They do not use the
// settings of this host.
const containerVerbs = config.ClusterUp | config.Named | config.Engine | config.OneNode | config.Build

// addSettings gives a command --config and the flags of the settings it uses.
func (p *program) addSettings(c *cobra.Command, verb config.Verb) {
	help := "configuration file, - for standard input (default: what this host was set up with)"
	if verb&containerVerbs != 0 {
		help = "configuration file of the cluster, - for standard input"
	}
	c.Flags().StringVarP(&p.config, "config", "f", "", help)
	config.AddFlags(c.Flags(), verb)
	for _, s := range config.Settings(verb) {
		if len(s.Values) > 0 {
			_ = c.RegisterFlagCompletionFunc(s.Flag, cobra.FixedCompletions(s.Values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// load puts the settings together and names everything that is wrong with
// them at once.
func (p *program) load(flags *pflag.FlagSet, verb config.Verb, role string) (config.Config, config.Origins, error) {
	env := config.HostEnv(p.env)
	if verb&(containerVerbs|config.Every) != 0 {
		env = config.ClusterEnv(p.env)
	}
	if err := p.settingsLost(verb); err != nil {
		return config.Config{}, nil, err
	}
	cfg, origins, err := config.Load(p.configPath(verb), env, flags)
	if verb&(config.Master|config.Worker|config.Preflight) != 0 {
		err = errors.Join(err, config.OldVariables(p.env))
	}
	if verb&config.ClusterUp != 0 {
		err = errors.Join(err, config.OldClusterVariables(p.env))
	}
	err = errors.Join(err, origins.Tell(preflight.CheckIgnored(cfg.IgnorePreflight)), origins.Tell(p.possible(cfg, origins, verb).Validate(role)))
	if err != nil {
		return cfg, origins, &usageError{err}
	}
	return cfg, origins, nil
}

// possible returns cfg without the changes that preflight refuses: other checks
// of such a value would only report a second error.
func (p *program) possible(cfg config.Config, origins config.Origins, verb config.Verb) config.Config {
	if verb&(config.Master|config.Worker|config.Preflight) == 0 {
		return cfg
	}
	saved, err := local.ReadSaved(host.Files{})
	if err != nil || saved.Lost != nil {
		return cfg // reported where the saved settings are needed
	}
	kept, _ := saved.Keep(cfg, origins)
	return kept
}

// configPath returns the file that the user named, or else the saved settings of
// this host. The commands about clusters of containers do not read those.
func (p *program) configPath(verb config.Verb) string {
	if named := p.namedFile(verb); named != "" {
		return named
	}
	if _, err := config.ReadSaved(config.SavedPath); ofThisHost(verb) && err == nil {
		return config.SavedPath
	}
	return ""
}

func (p *program) namedFile(verb config.Verb) string {
	named := []string{p.config, p.env("KUBE_BOOTSTRAP_CONFIG")}
	if verb&(containerVerbs|config.Every) != 0 {
		named = append(named, p.env("LOCAL_CLUSTER_CONF"), p.oldFile())
	}
	switch path := cmp.Or(named...); path {
	case "-":
		return "/dev/stdin"
	default:
		return path
	}
}

// ofThisHost reports whether a verb goes by what this host was set up with.
func ofThisHost(verb config.Verb) bool { return verb&(containerVerbs|config.Offline|config.Push) == 0 }

// settingsLost returns the problem that the settings of this host cannot be
// read: defaults must not take their place.
func (p *program) settingsLost(verb config.Verb) error {
	if !ofThisHost(verb) || p.namedFile(verb) != "" {
		return nil
	}
	saved, err := local.ReadSaved(host.Files{})
	if err != nil {
		return nil // told where the settings are needed; only root may read them
	}
	return saved.Lost
}

// oldFile returns the configuration file of kubeadm-local-cluster; empty if it
// does not exist.
func (p *program) oldFile() string {
	path := filepath.Join(p.env("HOME"), ".kubeadm-local-cluster", "config.yaml")
	if p.env("HOME") == "" || !readable(path) {
		return ""
	}
	return path
}

func readable(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	return file.Close() == nil
}

// tellSettings prints the settings for logs, in the format of the previous
// scripts, with the derived versions.
func (p *program) tellSettings(h *local.Host, origins config.Origins, verb config.Verb) {
	if p.terminal && p.progress == "auto" || p.progress != "auto" && p.progress != "plain" {
		return
	}
	derived := map[string]string{"etcdVersion": "v" + h.Versions.Etcd, "flannelVersion": "v" + h.Versions.Flannel}
	for _, v := range h.Config.Values(verb, origins) {
		if v.Value == "" {
			v.Value = derived[v.Field]
		}
		if v.Value != "" {
			p.say(fmt.Sprintf("%s is set to: %s", v.Env, v.Value))
		}
	}
}
