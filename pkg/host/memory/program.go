package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// DropProgram unmaps the read-only pages of the executable. Pages that are
// used again come from the page cache. Without this, most of a large
// executable becomes resident over time, because the kernel maps 64 kB around
// each page that is used, and whole pages of 2 MB if the cache has them.
func DropProgram() {
	for _, m := range program() {
		advise(m, syscall.MADV_DONTNEED)
	}
}

// mapping is a range of addresses of this process, in bytes.
type mapping struct{ start, length uintptr }

// program returns the read-only mappings of the executable, and disables pages of 2 MB
// in them. It omits mappings with anonymous pages, such as relocated data, whose content
// would be lost.
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
			advise(m, syscall.MADV_NOHUGEPAGE)
			all = append(all, m)
		}
	}
	return all
})

// mappingOf returns a read-only mapping of the executable. Any other mapping
// has length 0. fields are the words of a line of smaps such as
// "00400000-02151000 r-xp 00000000 fe:00 852289 /path".
func mappingOf(fields []string, program string) mapping {
	if len(fields) < 6 || fields[5] != program || strings.Contains(fields[1], "w") {
		return mapping{}
	}
	var first, end uintptr
	if _, err := fmt.Sscanf(fields[0], "%x-%x", &first, &end); err != nil {
		return mapping{}
	}
	return mapping{first, end - first}
}

func advise(m mapping, advice int) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.length, uintptr(advice))
}
