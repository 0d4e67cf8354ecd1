package process

import (
	"os"
	"strconv"
	"strings"
)

const capSysResource = 24

// CanLowerOOMScore reports whether a process here may have CAP_SYS_RESOURCE,
// which it needs to lower its OOM score.
func CanLowerOOMScore() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err != nil || mayHave(capSysResource, string(status))
}

// mayHave reports whether the bounding set in /proc/PID/status has a
// capability.
func mayHave(capability int, status string) bool {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err != nil || set&(1<<capability) != 0
		}
	}
	return true
}
