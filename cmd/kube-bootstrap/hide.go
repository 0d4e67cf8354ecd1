package main

import (
	"os"
	"strings"
	"syscall"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// hideToken starts this program again with a token that was typed as a flag in
// its environment: arguments show in everybody's `ps`, the environment of
// root's processes only in root's. It returns when there is none to hide.
func hideToken(args []string) {
	left, token := withoutToken(args)
	if token == "" {
		return
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	env := append(os.Environ(), config.EnvName("token")+"="+token)
	// Where this fails, as it does in an emulator, the flag works all the same.
	_ = syscall.Exec(self, append([]string{os.Args[0]}, left...), env)
}

// withoutToken returns args without --token and its value.
func withoutToken(args []string) (left []string, token string) {
	for i := 0; i < len(args); i++ {
		value, joined := strings.CutPrefix(args[i], "--token=")
		switch {
		case args[i] == "--":
			return append(left, args[i:]...), token
		case joined:
			token = value
		case args[i] == "--token" && i+1 < len(args):
			i++
			token = args[i]
		default:
			left = append(left, args[i])
		}
	}
	return left, token
}
