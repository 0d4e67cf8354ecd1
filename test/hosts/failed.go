package hosts

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// failed holds the end of the error of each command that ended a test. The
// output of a run has thousands of lines, and a log of CI often shows only its
// last ones: TestMain repeats the errors there.
var failed struct {
	sync.Mutex
	texts []string
}

// failedLines is how many lines of an error are repeated.
const failedLines = 12

func noteFailed(test, machine string, err error) {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	failed.Lock()
	defer failed.Unlock()
	failed.texts = append(failed.texts, fmt.Sprintf("%s, on %s:\n  %s", test, machine,
		strings.Join(lines[max(0, len(lines)-failedLines):], "\n  ")))
}

func reportFailed(w io.Writer) {
	for _, text := range failed.texts {
		fmt.Fprintln(w, "a command failed in", text)
	}
}
