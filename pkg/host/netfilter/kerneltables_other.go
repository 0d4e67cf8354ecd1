//go:build !linux

package netfilter

func kernelTables() (names []string, supported bool, err error) { return nil, false, nil }
