//go:build !linux

package balancer

// limitSilence does nothing: only Linux has TCP_USER_TIMEOUT.
func limitSilence(int) error { return nil }
