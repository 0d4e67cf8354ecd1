package kernel

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"
)

// MemoryAvailable returns MemAvailable of /proc/meminfo in bytes.
func MemoryAvailable() (int64, error) { return memory("MemAvailable") }

// MemoryTotal returns MemTotal of /proc/meminfo in bytes.
func MemoryTotal() (int64, error) { return memory("MemTotal") }

func memory(field string) (int64, error) {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		value, ok := strings.CutPrefix(lines.Text(), field+":")
		if !ok {
			continue
		}
		var kib int64
		_, err := fmt.Sscan(value, &kib)
		return kib << 10, err
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("/proc/meminfo has no %s", field))
}
