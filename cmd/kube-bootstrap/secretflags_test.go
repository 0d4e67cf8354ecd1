package main

import (
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
