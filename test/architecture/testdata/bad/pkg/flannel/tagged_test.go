//go:build root

package flannel
