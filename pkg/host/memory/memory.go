// Package memory limits the memory of a process that runs for months.
package memory

import (
	_ "embed"
	"runtime/debug"
)

// Program is the source of DropProgram, a file of a package "memory" that needs only the
// standard library: the components that are built from source contain it.
//
//go:embed program.go
var Program string

// Spend lets garbage grow further than usual, until Save, because collections would take a
// third of the CPU time of a process that makes most of its garbage when it starts.
func Spend() {
	const garbagePercent = 400
	debug.SetGCPercent(garbagePercent)
}

// Save limits the garbage in the heap of this process, and returns the memory that its
// start needed.
func Save() {
	const garbagePercent = 25
	debug.SetGCPercent(garbagePercent)
	debug.FreeOSMemory()
	DropProgram()
}
