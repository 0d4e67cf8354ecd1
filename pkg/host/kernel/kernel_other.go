//go:build !linux

package kernel

import (
	"context"
	"errors"
)

// UnloadModule needs Linux.
func UnloadModule(string) error { return errors.ErrUnsupported }

func makesLinks(string) (bool, error) { return false, errors.ErrUnsupported }

// InotifyFree needs Linux.
func InotifyFree(int) (int, error) { return 0, errors.ErrUnsupported }

// WatchNetwork needs Linux.
func WatchNetwork(context.Context, func(Change)) error { return errors.ErrUnsupported }

// WatchFirewall needs Linux.
func WatchFirewall(context.Context, func(Change)) error { return errors.ErrUnsupported }
