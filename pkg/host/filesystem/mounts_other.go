//go:build !linux

package filesystem

import "errors"

// UnmountBelow needs Linux.
func UnmountBelow(string) error { return errors.ErrUnsupported }

// UnmountInside needs Linux.
func UnmountInside(string) error { return errors.ErrUnsupported }

// SharedMount needs Linux.
func SharedMount(string) (bool, error) { return false, errors.ErrUnsupported }

// SharedMountIn needs Linux.
func SharedMountIn(int, string) (bool, error) { return false, errors.ErrUnsupported }

// MountedOnItself needs Linux.
func MountedOnItself(string) (bool, error) { return false, errors.ErrUnsupported }

// ShareMount needs Linux.
func ShareMount(string) error { return errors.ErrUnsupported }
