package image

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DefaultKubernetes is the version a cluster gets when none is named.
const DefaultKubernetes = "v1.36.3"

// newest is the patch release that a bare minor version stands for.
var newest = map[int]string{34: "v1.34.4", 35: "v1.35.4", 36: DefaultKubernetes}

const oldestMinor, newestMinor = 34, 36

// What For may find wrong with a version.
var (
	ErrMalformed = errors.New("not a version like v1.36.3")
	ErrTooOld    = errors.New("too old")
	ErrTooNew    = errors.New("newer than this program knows")
)

// Versions names the version of every component, each with its own spelling:
// Kubernetes with a leading v, all others bare.
type Versions struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Flannel    string `json:"flannel"`
	CoreDNS    string `json:"coredns"`
	Pause      string `json:"pause"`
	CNI        string `json:"cni"`

	// Programs of Kubernetes that were built from a checkout, and what they say
	// that they are: "kubelet": "v1.36.3+5d7e3f0a91b2".
	Programs map[string]string `json:"programs,omitempty"`
}

// For returns the versions that go with a Kubernetes version: "v1.36.3",
// "1.36" (its newest patch), "" or "stable" (the default). Fields of override
// that are set win.
func For(kubernetes string, override Versions) (Versions, error) {
	return complete(kubernetes, func(int) Versions { return sourceVersions }, override)
}

// sourceVersions are what is built from source, with any Kubernetes.
var sourceVersions = Versions{Etcd: "3.7.3", Flannel: "0.28.4", CoreDNS: "1.15.0", Pause: "3.10.2", CNI: "1.9.1"}

func complete(kubernetes string, pins func(minor int) Versions, override Versions) (Versions, error) {
	if override.Kubernetes != "" {
		kubernetes = override.Kubernetes
	}
	k8s, err := parseKubernetes(kubernetes)
	if err != nil {
		return Versions{}, err
	}
	v := Versions{Kubernetes: k8s}
	minor, err := strconv.Atoi(v.minor())
	if err != nil {
		return Versions{}, err
	}
	v = pins(minor)
	v.Kubernetes, v.Programs = k8s, override.Programs
	for _, o := range []struct {
		name  string
		into  *string
		value string
	}{
		{"etcd", &v.Etcd, override.Etcd},
		{"flannel", &v.Flannel, override.Flannel},
		{"CoreDNS", &v.CoreDNS, override.CoreDNS},
		{"pause", &v.Pause, override.Pause},
		{"CNI plugins", &v.CNI, override.CNI},
	} {
		if o.value == "" {
			continue
		}
		if *o.into, err = parseComponent(o.name, o.value); err != nil {
			return Versions{}, err
		}
	}
	return v, nil
}

var (
	kubernetesVersion = regexp.MustCompile(`^v?1\.(\d{1,3})(?:\.(\d{1,3})(-(?:alpha|beta|rc)\.\d+)?)?$`)
	componentVersion  = regexp.MustCompile(`^v?\d{1,4}(\.\d{1,4}){1,2}(-[0-9A-Za-z.]+)?$`)
)

func parseKubernetes(text string) (string, error) {
	if text == "" || text == "stable" {
		return DefaultKubernetes, nil
	}
	m := kubernetesVersion.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("kubernetes version %q: %w", text, ErrMalformed)
	}
	minor, _ := strconv.Atoi(m[1])
	switch {
	case minor < oldestMinor:
		return "", fmt.Errorf("kubernetes version %s: %w, use 1.%d to 1.%d", text, ErrTooOld, oldestMinor, newestMinor)
	case minor > newestMinor:
		return "", fmt.Errorf("kubernetes version %s: %w, use 1.%d to 1.%d", text, ErrTooNew, oldestMinor, newestMinor)
	case m[2] == "":
		return newest[minor], nil
	}
	return "v" + strings.TrimPrefix(text, "v"), nil
}

func parseComponent(name, text string) (string, error) {
	if !componentVersion.MatchString(text) {
		return "", fmt.Errorf("%s version %q: %w", name, text, ErrMalformed)
	}
	return strings.TrimPrefix(text, "v"), nil
}

// staging returns the version of the modules that are cut from a Kubernetes
// release: v1.36.3 has k8s.io/api v0.36.3.
func staging(kubernetes string) string { return "v0" + strings.TrimPrefix(kubernetes, "v1") }

func (v Versions) minor() string { return strings.Split(v.Kubernetes, ".")[1] }
