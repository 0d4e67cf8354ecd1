package host

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// SaveMemory sets up a process that runs for months: its heap stays small, and
// what its start needed is returned.
func SaveMemory() {
	const garbagePercent = 25
	debug.SetGCPercent(garbagePercent)
	debug.FreeOSMemory()
	DropProgram()
}

// DropProgram unmaps the read-only pages of the program. Those that are used
// come back from the page cache. Otherwise all of a large program soon counts as
// resident: the kernel maps 64 kB around each page that is used, and whole
// pages of 2 MB where the cache has them.
func DropProgram() {
	for _, m := range program() {
		advise(m, unix.MADV_DONTNEED)
	}
}

// mapping is a part of this process's memory.
type mapping struct{ start, length uintptr }

// program returns the read-only mappings of the program, after it has ruled out
// pages of 2 MB in them. A mapping with pages of its own, such as the relocated
// data of a position-independent program, does not count: they would be lost.
var program = sync.OnceValue(func() []mapping {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil
	}
	defer smaps.Close()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	var all []mapping
	var m mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case strings.Contains(fields[0], "-"):
			m = mappingOf(fields, self)
		case m.length > 0 && fields[0] == "Anonymous:" && fields[1] == "0":
			advise(m, unix.MADV_NOHUGEPAGE)
			all = append(all, m)
		}
	}
	return all
})

// mappingOf returns a read-only mapping of the program. Others have no length. The fields are those of a line such as
// "00400000-02151000 r-xp 00000000 fe:00 852289 /path".
func mappingOf(fields []string, program string) mapping {
	if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
		return mapping{}
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	end, endErr := strconv.ParseUint(to, 16, 64)
	if err != nil || endErr != nil {
		return mapping{}
	}
	return mapping{uintptr(first), uintptr(end - first)}
}

func advise(m mapping, advice int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.length, uintptr(advice))
}
