// Package source reads the settings from flags, the environment, files and defaults.
package source

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
)

// Load merges the defaults, the file at path (none if empty), the environment and the
// flags that were set; the later source wins. The error names every value that cannot
// be read, and the configuration contains all other values.
func Load(path string, env Env, flags *pflag.FlagSet) (config.Config, config.Origins, error) {
	cfg, origins := config.Default(), config.Origins{}
	// The address is derived again from the service network in force.
	cfg.DNSServerIP = netip.Addr{}
	var errs []error
	if path != "" {
		errs = append(errs, file.Read(path, &cfg, origins))
	}
	for _, s := range config.Settings(config.Every) {
		errs = append(errs, fromEnv(&cfg, s, env, origins), fromFlags(&cfg, s, flags, origins))
	}
	errs = append(errs, readSecrets(&cfg, origins), checkNodes(cfg, origins).ToAggregate(),
		checkMachines(cfg, origins).ToAggregate())
	return cfg.WithoutUnusedAddresses(origins).Complete(), origins, errors.Join(errs...)
}

func fromEnv(cfg *config.Config, s config.Setting, env Env, origins config.Origins) error {
	for _, name := range s.EnvNames() {
		if raw, found := env(name); raw != "" {
			return take(cfg, s, raw, config.Origin{Source: config.FromEnvironment, Where: found}, origins)
		}
	}
	return nil
}

func fromFlags(cfg *config.Config, s config.Setting, flags *pflag.FlagSet, origins config.Origins) error {
	if flags == nil {
		return nil
	}
	if f := flags.Lookup(s.Flag); f != nil && f.Changed {
		if given, ours := f.Value.(*flagValue); ours {
			return take(cfg, s, given.typed, config.Origin{Source: config.FromFlag, Where: "--" + s.Flag}, origins)
		}
	}
	return nil
}

func take(cfg *config.Config, s config.Setting, raw string, from config.Origin, origins config.Origins) error {
	origins[s.Field] = from
	if err := s.Set(cfg, raw); err != nil {
		return field.Invalid(field.NewPath(s.Field), s.Excerpt(raw), fmt.Sprintf("%v (from %s)", err, from))
	}
	return nil
}

// readSecrets fills each secret from the file that holds it, unless the
// secret itself was set with a higher precedence than the name of the file.
func readSecrets(c *config.Config, origins config.Origins) error {
	var errs []error
	for _, s := range config.Settings(config.Every) {
		path := s.Get(*c)
		if s.Holds == "" || path == "" {
			continue
		}
		secret, _ := config.Find(s.Holds)
		if secret.Get(*c) != "" && origins[s.Holds].Source > origins[s.Field].Source {
			continue
		}
		data, err := readSmall(path)
		if err != nil {
			errs = append(errs,
				field.Invalid(field.NewPath(s.Field), path, fmt.Sprintf("must be a file that can be read: %v", err)))
			continue
		}
		origins[s.Holds] = origins[s.Field]
		if err := secret.Set(c, string(data)); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(s.Field), path, fmt.Sprintf("its content %v", err)))
		}
	}
	return errors.Join(errs...)
}

// mostRead is the size of the largest file with the value of a setting, in
// bytes. A value is also a flag for other hosts, and the kernel limits flags.
const mostRead = 64 << 10

func readSmall(path string) ([]byte, error) {
	in := os.Stdin
	if path != "-" {
		opened, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, mostRead+1))
	if err == nil && len(data) > mostRead {
		err = fmt.Errorf("it is larger than %d KiB", mostRead>>10)
	}
	return data, err
}

// checkNodes compares the nodes with one another, and with masters and workers.
func checkNodes(c config.Config, origins config.Origins) field.ErrorList {
	if len(c.Nodes) == 0 {
		return nil
	}
	var errs field.ErrorList
	for name, value := range map[string]int{"masters": c.Masters, "workers": c.Workers} {
		if origins[name].Source != config.FromDefault {
			errs = append(errs, field.Invalid(field.NewPath(name), value,
				fmt.Sprintf("nodes (%s) says which nodes there are; leave %s (%s) out, or nodes",
					origins[config.NodesField].Where, name, origins[name].Where)))
		}
	}
	if !slices.ContainsFunc(c.Nodes, func(n config.NodeEntry) bool { return n.Role == config.RoleControlPlane }) {
		errs = append(errs, field.Required(field.NewPath(config.NodesField),
			"one with role control-plane ("+origins[config.NodesField].Where+")"))
	}
	named := map[string]int{}
	for i, n := range c.Nodes {
		if other, twice := named[n.Name]; twice && n.Name != "" {
			at := field.NewPath(config.NodesField).Index(i).Child("name")
			errs = append(errs,
				field.Invalid(at, n.Name,
					fmt.Sprintf("is that of nodes[%d] (%s); choose another", other, origins[at.String()].Where)))
		}
		named[n.Name] = i
	}
	return errs
}

// Env looks up a variable and also returns the name under which it was found.
type Env func(name string) (value, found string)

// HostEnv looks up each variable by its own name only.
func HostEnv(env func(string) string) Env {
	return func(name string) (string, string) { return env(name), name }
}

// ClusterEnv also accepts the K8S_DIND_ names, for clusters of containers.
func ClusterEnv(env func(string) string) Env {
	return func(name string) (string, string) {
		if v := env(name); v != "" {
			return v, name
		}
		flag, ours := strings.CutPrefix(name, config.EnvPrefix)
		if !ours {
			return "", name
		}
		other := "K8S_DIND_" + flag
		return env(other), other
	}
}
