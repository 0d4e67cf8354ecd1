package kernel

import (
	"bytes"
	"os"
)

// SwapOn reports whether this machine uses swap.
func SwapOn() bool {
	data, err := os.ReadFile("/proc/swaps")
	return err == nil && bytes.Count(data, []byte("\n")) > 1 // the first line is the header
}
