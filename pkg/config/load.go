package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
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

// Load puts a configuration together: the defaults, over them the file at path
// (none if empty), the environment and the flags that were set. The error names
// every value that cannot be read, and the configuration holds the others.
func Load(path string, env Env, flags *pflag.FlagSet) (Config, Origins, error) {
	cfg, origins := Default(), Origins{}
	// The address is derived again from the service network in force.
	cfg.DNSServerIP = ""
	var errs []error
	if path != "" {
		errs = append(errs, cfg.readFile(path, origins))
	}
	for _, s := range settings {
		errs = append(errs, s.fromEnv(&cfg, env, origins), s.fromFlags(&cfg, flags, origins))
	}
	errs = append(errs, cfg.readSecrets(origins), cfg.togetherNodes(origins).ToAggregate())
	return cfg.complete(), origins, errors.Join(errs...)
}

// lastSaved is the last field that Marshal writes in every case: a file without
// it was cut.
const lastSaved = "keepImages"

// ReadSaved reads what Marshal wrote, at path. Fields of another version of
// the program are passed over: what was set up must stay removable. A file that
// is empty or was cut is an error, as defaults would take the place of what is
// missing.
func ReadSaved(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read saved settings: %w", err)
	}
	cfg := Default()
	root, err := document(data)
	switch {
	case err != nil:
	case root == nil:
		err = errors.New("it is empty")
	case !slices.ContainsFunc(root.Content, func(n *yaml.Node) bool { return n.Value == lastSaved }):
		err = errors.New("it is not complete")
	default:
		err = decoder{path: path}.decode(&cfg, root, Origins{})
	}
	if err != nil {
		return Config{}, fmt.Errorf("read saved settings: %w", err)
	}
	return cfg.complete(), nil
}

func (s Setting) fromEnv(cfg *Config, env Env, origins Origins) error {
	if env == nil {
		return nil
	}
	for _, name := range s.EnvNames() {
		if raw, found := env(name); raw != "" {
			return s.take(cfg, raw, Origin{FromEnvironment, found}, origins)
		}
	}
	return nil
}

func (s Setting) fromFlags(cfg *Config, flags *pflag.FlagSet, origins Origins) error {
	if flags == nil {
		return nil
	}
	f := flags.Lookup(s.Flag)
	if f == nil || !f.Changed {
		return nil
	}
	if _, ours := f.Value.(*flagValue); !ours {
		return nil
	}
	return s.take(cfg, f.Value.String(), Origin{FromFlag, "--" + s.Flag}, origins)
}

func (s Setting) take(cfg *Config, raw string, from Origin, origins Origins) error {
	origins[s.Field] = from
	if err := s.at(cfg).set(raw); err != nil {
		return field.Invalid(field.NewPath(s.Field), s.masked(raw), fmt.Sprintf("%v (from %s)", err, from))
	}
	return nil
}

// readSecrets fills each secret from the file that holds it, unless the
// secret itself was set with a higher precedence than the name of the file.
func (c *Config) readSecrets(origins Origins) error {
	var errs []error
	for _, s := range settings {
		path := s.at(c).get()
		if s.Holds == "" || path == "" {
			continue
		}
		secret, _ := byField(s.Holds)
		if secret.at(c).get() != "" && origins[s.Holds].Source > origins[s.Field].Source {
			continue
		}
		data, err := readSmall(path)
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(s.Field), path, fmt.Sprintf("must be a file that can be read: %v", err)))
			continue
		}
		origins[s.Holds] = origins[s.Field]
		if err := secret.at(c).set(string(data)); err != nil {
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

// Env looks up a variable and also returns the name under which it was found.
type Env func(name string) (value, found string)

// HostEnv looks up each variable by its own name only.
func HostEnv(env func(string) string) Env {
	return func(name string) (string, string) { return env(name), name }
}

// ClusterEnv also accepts the K8S_DIND_ names, for the commands about clusters of
// containers.
func ClusterEnv(env func(string) string) Env {
	return func(name string) (string, string) {
		if v := env(name); v != "" {
			return v, name
		}
		flag, ours := cutOwn(name)
		if !ours {
			return "", name
		}
		other := "K8S_DIND_" + flag
		return env(other), other
	}
}
