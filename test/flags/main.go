// Command flags writes the names of the flags and feature gates that the
// components accept, as their own --help prints them. `make flags` runs it with
// the directory of the programs that a build has left, and with the directory of
// the lists.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
)

// programs are the components that each executable contains. An executable of one
// component is started without a name.
var programs = map[string][]string{
	"hyperkube": {"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"},
	"etcd":      {"etcd"},
}

var (
	versionForm = regexp.MustCompile(`-v(\d+\.\d+)\.\d+-`)
	flagForm    = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--([a-z0-9-]+)(?:[ =]|$)`)
	gateForm    = regexp.MustCompile(`([A-Z]\w+)=true\|false \(`)
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: flags DIRECTORY-OF-PROGRAMS DIRECTORY-OF-LISTS")
		os.Exit(2)
	}
	if err := writeAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func writeAll(from, to string) error {
	for name, components := range programs {
		paths, err := filepath.Glob(filepath.Join(from, name+"-v*", name))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := write(path, components, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func write(program string, components []string, to string) error {
	version := versionForm.FindStringSubmatch(program)
	if version == nil {
		return fmt.Errorf("%s: the directory does not name a version", program)
	}
	list := catalog.FlagList{Flags: map[string][]string{}}
	for _, component := range components {
		help, err := helpOf(program, component)
		if err != nil {
			return err
		}
		list.Flags[component] = names(flagForm, help)
		list.Gates = append(list.Gates, names(gateForm, help)...)
	}
	slices.Sort(list.Gates)
	list.Gates = slices.Compact(list.Gates)
	data, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, catalog.FlagFile(components[0], version[1])), append(data, '\n'), 0o644)
}

func helpOf(program, component string) (string, error) {
	args := []string{component, "--help"}
	if filepath.Base(program) == component {
		args = args[1:]
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return string(out), nil
}

func names(form *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range form.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
