package config

import (
	"slices"
	"testing"
)

func TestArgumentsOverDefaults(t *testing.T) {
	defaults := []string{"--v=1", "--client-cert-auth", "--controllers=*", "--verbose"}
	own := Arguments{"v": "2", "client-cert-auth": "false", "controllers": "-ttl", "new": "a,b"}
	want := []string{"--v=2", "--client-cert-auth=false", "--controllers=*,-ttl", "--verbose", "--new=a,b"}
	if got := own.Over(defaults); !slices.Equal(got, want) || defaults[0] != "--v=1" {
		t.Errorf("got %q, want %q", got, want)
	}
}
