package source

import (
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

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
		flag, ours := strings.CutPrefix(name, config.EnvPrefix)
		if !ours {
			return "", name
		}
		other := "K8S_DIND_" + flag
		return env(other), other
	}
}
