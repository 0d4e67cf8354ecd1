package main

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// usage runs a program without a limit and prints its duration in seconds and the
// largest resident set in kilobytes of the program and its children.
func usage(args []string) error {
	began := time.Now()
	run, err := os.StartProcess(args[0], args, &os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
	if err != nil {
		return err
	}
	ended, err := run.Wait()
	if err != nil {
		return err
	}
	if !ended.Success() {
		return fmt.Errorf("%s: %s", args[0], ended)
	}
	used, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("%s: this system does not tell what a process used", args[0])
	}
	fmt.Printf("%.2f %d\n", time.Since(began).Seconds(), used.Maxrss)
	return nil
}
