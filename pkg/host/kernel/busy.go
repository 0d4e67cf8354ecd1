package kernel

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"
)

// Busy returns how long processes of this host have waited for its CPUs, its disks and its
// memory, or, if the kernel does not count that, how long its CPUs have worked.
func Busy() time.Duration {
	var sum time.Duration
	counted := false
	for _, resource := range []string{"cpu", "io", "memory"} {
		data, err := os.ReadFile("/proc/pressure/" + resource)
		if err != nil {
			continue // the kernel does not count, or psi=0 is on its command line
		}
		sum, counted = sum+stalled(data), true
	}
	if counted {
		return sum
	}
	data, _ := os.ReadFile("/proc/stat")
	return worked(data)
}

// stalled returns the total of "some avg10=0.00 avg60=0.00 avg300=0.00 total=313081139", in microseconds.
func stalled(pressure []byte) time.Duration {
	first, _, _ := strings.Cut(string(pressure), "\n")
	_, total, _ := strings.Cut(first, "total=")
	n, _ := strconv.ParseInt(strings.TrimSpace(total), 10, 64)
	return time.Duration(n) * time.Microsecond
}

// clockTick is the unit of /proc/stat on all architectures of Linux that Go supports.
const clockTick = 10 * time.Millisecond

// worked returns the time of the CPUs, by their number, except "idle", from
// "cpu user nice system idle iowait irq softirq steal ..." and the lines of each CPU.
func worked(stat []byte) time.Duration {
	cpus := max(1, bytes.Count(stat, []byte("\ncpu")))
	first, _, _ := strings.Cut(string(stat), "\n")
	var ticks int64
	for i, field := range strings.Fields(first) {
		if i == 0 || i == 4 || i > 8 { // the name, idle, and the guests, whose time is also the user's
			continue
		}
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * clockTick / time.Duration(cpus)
}
