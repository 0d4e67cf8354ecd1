package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// hideSecrets moves secrets from flags into environment variables and executes this
// program again: every user can read arguments, only root the environment of root's
// processes. It returns if there are no secrets.
func hideSecrets(args []string) {
	left, hidden := withoutSecrets(args)
	if len(hidden) == 0 {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	// If exec fails, as in an emulator, the program continues with the flags.
	_ = host.Become(self, append([]string{os.Args[0]}, left...), hidden...)
}

// withoutSecrets returns args without the secret flags and their values, and these
// flags as variables of the environment. It does not change the flags of kubectl.
func withoutSecrets(args []string) (left, hidden []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--" || args[i] == "kubectl" && (i == 0 || args[i-1] == "cluster") {
			return append(left, args[i:]...), hidden
		}
		name, value, joined := strings.Cut(args[i], "=")
		if !secretFlag(name) || !joined && i+1 == len(args) {
			left = append(left, args[i])
			continue
		}
		if !joined {
			i++
			value = args[i]
		}
		hidden = append(hidden, config.EnvName(strings.TrimPrefix(name, "--"))+"="+value)
	}
	return left, hidden
}

// takeSecrets removes the secrets from the environment of this process, so that no child
// process inherits them. It returns a lookup that finds them. A variable without the prefix
// of the program can belong to another program and stays.
func takeSecrets(lookup func(string) string) func(string) string {
	taken := map[string]string{}
	for _, s := range config.Settings(config.Every) {
		for _, name := range s.EnvNames() {
			if s.Secret && strings.HasPrefix(name, config.EnvPrefix) {
				taken[name] = lookup(name)
				_ = os.Unsetenv(name) // fails only for a name that is none
			}
		}
	}
	return func(name string) string { return cmp.Or(taken[name], lookup(name)) }
}

func secretFlag(name string) bool {
	return slices.ContainsFunc(config.Settings(config.Every),
		func(s config.Setting) bool { return s.Secret && s.Flag != "" && name == "--"+s.Flag })
}
