package host

import (
	"os"
	"strconv"
	"strings"
)

const capSysResource = 24

// CanLowerOOMScore reports whether processes here may have CAP_SYS_RESOURCE,
// without which nobody may ask to be spared when memory runs out.
func CanLowerOOMScore() bool {
	status, err := os.ReadFile("/proc/self/status")
	return err != nil || mayHave(capSysResource, string(status))
}

// mayHave reads the bounding set in a process's status.
func mayHave(capability int, status string) bool {
	for line := range strings.Lines(status) {
		if hex, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			return err != nil || set&(1<<capability) != 0
		}
	}
	return true
}
