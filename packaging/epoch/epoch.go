// Package epoch returns the time of a build, which its artifacts contain.
package epoch

import (
	"os"
	"strconv"
	"time"
)

// Made is SOURCE_DATE_EPOCH, with which two builds are the same, or now. See
// https://reproducible-builds.org/specs/source-date-epoch/.
func Made() time.Time {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	return time.Now().UTC()
}
