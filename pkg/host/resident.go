package host

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// StaySmall keeps the memory of a process small that runs for months. The
// kernel maps the file of a program in pages of 2 MB, so that soon all of it
// counts as resident, although a small part is used.
func StaySmall() {
	const garbagePercent = 25
	debug.SetGCPercent(garbagePercent)
	debug.FreeOSMemory()
	dropProgram()
}

// dropProgram unmaps the read-only pages of the program. Those that are used
// come back from the page cache, in small pages. A mapping with pages of its own,
// such as the relocated data of a position-independent program, must stay.
func dropProgram() {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	var start, length uintptr
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case strings.Contains(fields[0], "-"):
			start, length = mappingOf(fields, self)
		case length > 0 && fields[0] == "Anonymous:" && fields[1] == "0":
			advise(start, length, unix.MADV_NOHUGEPAGE)
			advise(start, length, unix.MADV_DONTNEED)
		}
	}
}

// mappingOf returns where a read-only mapping of the program is. length is 0
// for other mappings. The fields are those of a line such as
// "00400000-02151000 r-xp 00000000 fe:00 852289 /path".
func mappingOf(fields []string, program string) (start, length uintptr) {
	if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
		return 0, 0
	}
	from, to, _ := strings.Cut(fields[0], "-")
	first, err := strconv.ParseUint(from, 16, 64)
	end, endErr := strconv.ParseUint(to, 16, 64)
	if err != nil || endErr != nil {
		return 0, 0
	}
	return uintptr(first), uintptr(end - first)
}

func advise(start, length uintptr, advice int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, length, uintptr(advice))
}
