package main

import (
	"os"
	"strings"
	"testing"
)

func TestTokenLeavesTheArguments(t *testing.T) {
	for _, c := range []struct{ args, left, token string }{
		{"worker --token t --master-ip i", "worker --master-ip i", "t"},
		{"worker --token=t", "worker", "t"},
		{"worker --token-file f", "worker --token-file f", ""},
		{"worker -- --token t", "worker -- --token t", ""},
		{"worker --token", "worker --token", ""},
		{"kubectl --token t get pods", "kubectl --token t get pods", ""},
		{"cluster kubectl get pods --token t", "cluster kubectl get pods --token t", ""},
	} {
		left, hidden := withoutSecrets(strings.Fields(c.args))
		token := strings.TrimPrefix(strings.Join(hidden, " "), "KUBE_BOOTSTRAP_TOKEN=")
		if strings.Join(left, " ") != c.left || token != c.token {
			t.Errorf("%s: %v, %q", c.args, left, token)
		}
	}
}

// TestChildProcessesGetNoSecrets: only the program itself finds them.
func TestChildProcessesGetNoSecrets(t *testing.T) {
	secrets := []string{
		"KUBE_BOOTSTRAP_TOKEN", "KUBE_BOOTSTRAP_CERTIFICATE_KEY", "KUBE_BOOTSTRAP_REGISTRY_PASSWORD",
		"KUBE_BOOTSTRAP_REGISTRY_TOKEN",
	}
	for _, name := range append(secrets, "KUBE_BOOTSTRAP_CACHE") {
		t.Setenv(name, "x")
	}
	env := takeSecrets(os.Getenv)
	for _, name := range secrets {
		if _, inherited := os.LookupEnv(name); inherited || env(name) != "x" {
			t.Errorf("%s: inherited %t, read %q", name, inherited, env(name))
		}
	}
	if os.Getenv("KUBE_BOOTSTRAP_CACHE") != "x" {
		t.Error("a variable that is no secret was removed")
	}
}
