// Package wait waits for the effects of a test, with more patience on a busy machine.
package wait

import (
	"testing"
	"time"
)

// Patience is how much longer than on an idle machine things may take: a limit
// costs time only where the test fails.
var Patience time.Duration = 4

// Until calls look until it returns nil; its last answer fails the test.
func Until(t *testing.T, limit time.Duration, what string, look func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(Patience * limit); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if err = look(); err == nil {
			return
		}
	}
	t.Fatalf("%s: not within %s: %v", what, Patience*limit, err)
}
