//go:build !linux

package links

import "errors"

// The library netlink does not define these values elsewhere. Its functions return an error there.
const scopeNowhere, scopeLink, permanent, bridgeFamily = 0, 0, 0, 0

var errInterrupted = errors.ErrUnsupported
