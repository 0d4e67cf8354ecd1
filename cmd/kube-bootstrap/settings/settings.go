// Package settings loads the settings of a command from its flags, variables and
// file, and has the commands that show settings.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/previous"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
)

// containerVerbs are the commands about clusters of containers, which use no settings of this host.
const containerVerbs = config.ClusterUp | config.Named | config.Engine | config.NodeAdd | config.Build

// AddFlags gives a command --config and the flags of the settings it uses.
func AddFlags(c *cobra.Command, verb config.Verb) {
	help := "configuration file, - for standard input (default: what this host was set up with)"
	if verb&containerVerbs != 0 {
		help = "configuration file of the cluster, - for standard input"
	}
	c.Flags().StringP("config", "f", "", help)
	source.AddFlags(c.Flags(), verb)
	for _, s := range config.Settings(verb) {
		if len(s.Values) > 0 {
			_ = c.RegisterFlagCompletionFunc(s.Flag,
				cobra.FixedCompletions(s.Values, cobra.ShellCompDirectiveNoFileComp))
		}
	}
}

// Load puts the settings together and names everything that is wrong with them at once.
func Load(
	env func(string) string, flags *pflag.FlagSet, verb config.Verb, role string,
) (config.Config, config.Origins, error) {
	variable := source.HostEnv(env)
	if verb&(containerVerbs|config.Every) != 0 {
		variable = source.ClusterEnv(env)
	}
	if err := settingsLost(env, flags, verb); err != nil {
		return config.Config{}, nil, err
	}
	cfg, origins, err := source.Load(Path(env, flags, verb), variable, flags)
	if verb&(config.Master|config.Worker|config.Preflight) != 0 {
		err = errors.Join(err, previous.Unread(env, previous.Variables))
	}
	if verb&config.ClusterUp != 0 {
		err = errors.Join(err, previous.Unread(env, previous.ClusterVariables()))
	}
	if verb&config.Preflight != 0 {
		role = "" // the checks report the missing settings together with the problems of the host
	}
	wrong := invalid(possible(cfg, origins, verb), origins, role, err)
	err = errors.Join(err, origins.Tell(preflight.CheckIgnored(cfg.IgnorePreflight)), origins.Tell(wrong))
	return cfg, origins, exit.Usage(err)
}

// invalid returns the errors of the settings. unread is the error of reading them, if there is one.
func invalid(cfg config.Config, origins config.Origins, role string, unread error) field.ErrorList {
	if unread != nil {
		return cfg.ValidateRead(role, origins)
	}
	return cfg.Validate(role)
}

// possible returns cfg without the changes that preflight refuses: other checks
// of such a value would only report a second error.
func possible(cfg config.Config, origins config.Origins, verb config.Verb) config.Config {
	if verb == config.Offline {
		// a pull uses mirrors, and its bundle may be pushed to a private registry
		cfg.Registry = config.RegistrySettings{}
	}
	if verb&(config.Master|config.Worker|config.Preflight) == 0 {
		return cfg
	}
	saved, err := local.ReadSaved(host.Files{})
	if err != nil || saved.Lost != nil {
		return cfg // reported where the saved settings are needed
	}
	kept, _ := saved.WithInForce(cfg, origins)
	return kept
}

// Path returns the file that the user named, or else the saved settings of
// this host. The commands about clusters of containers do not read those.
func Path(env func(string) string, flags *pflag.FlagSet, verb config.Verb) string {
	if named := namedFile(env, flags, verb); named != "" {
		return named
	}
	if _, err := file.ReadSaved(config.SavedPath); ofThisHost(verb) && err == nil {
		return config.SavedPath
	}
	return ""
}

func namedFile(env func(string) string, flags *pflag.FlagSet, verb config.Verb) string {
	flag, _ := flags.GetString("config") // empty if the command has no such flag
	named := []string{flag, env("KUBE_BOOTSTRAP_CONFIG")}
	if verb&(containerVerbs|config.Every) != 0 {
		named = append(named, env("LOCAL_CLUSTER_CONF"), oldFile(env))
	}
	path := cmp.Or(named...)
	if path == "-" {
		return "/dev/stdin"
	}
	return path
}

// ofThisHost reports whether a verb goes by what this host was set up with.
func ofThisHost(verb config.Verb) bool { return verb&(containerVerbs|config.Offline|config.Push) == 0 }

// settingsLost returns the problem that the settings of this host cannot be read: defaults
// must not take their place.
func settingsLost(env func(string) string, flags *pflag.FlagSet, verb config.Verb) error {
	if !ofThisHost(verb) || namedFile(env, flags, verb) != "" {
		return nil
	}
	// an error is reported where the settings are needed; only root may read them
	saved, _ := local.ReadSaved(host.Files{})
	return saved.Lost
}

// oldFile returns the file of kubeadm-local-cluster; empty if there is none.
func oldFile(env func(string) string) string {
	if env("HOME") == "" {
		return ""
	}
	file, err := os.Open(filepath.Join(env("HOME"), ".kubeadm-local-cluster", "config.yaml"))
	if err != nil {
		return ""
	}
	_ = file.Close()
	return file.Name()
}

// LoadRegistry is Load, with the registry that stands as the argument.
func LoadRegistry(env func(string) string, c *cobra.Command, verb config.Verb, args []string) (config.Config, error) {
	if len(args) == 1 {
		if err := c.Flags().Set("registry", args[0]); err != nil {
			return config.Config{}, exit.Usage(err)
		}
	}
	cfg, _, err := Load(env, c.Flags(), verb, "")
	return cfg, err
}

// FromEnv sets each flag of c from the environment variable of the flag. A flag on the command
// line has precedence. FromEnv skips the settings and --config, because Load reads their variables.
// It also skips --name: some commands use it for the name of a node, but its variable is the name
// of the cluster.
func FromEnv(env func(string) string, c *cobra.Command) error {
	if c.Hidden || c.DisableFlagParsing {
		return nil
	}
	variable := source.HostEnv(env)
	if path := strings.Fields(c.CommandPath()); len(path) > 1 && (path[1] == "cluster" || path[1] == "node") {
		variable = source.ClusterEnv(env)
	}
	var errs []error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, name := variable(config.EnvName(f.Name))
		if f.Changed || value == "" || slices.Contains([]string{"help", "config", "name"}, f.Name) ||
			source.IsSetting(f) {
			return
		}
		if err := c.Flags().Set(f.Name, value); err != nil {
			errs = append(errs, fmt.Errorf("environment %s: %w", name, err))
		}
	})
	if c.Flags().Changed("docker-host") && c.Flags().Changed("docker-context") {
		errs = append(errs, errors.New("--docker-host and --docker-context both name an engine: give one of them"))
	}
	return exit.Usage(errors.Join(errs...))
}
