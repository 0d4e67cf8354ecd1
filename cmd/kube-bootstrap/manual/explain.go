// Package manual explains the problems that the program reports, and writes its
// pages: docs/, man pages and completions.
package manual

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
)

// problemTable is written by test/problems from the source.
//
//go:embed problems.json
var problemTable []byte

// explained is a problem that the program can report, and every case of it.
type explained struct {
	Name    string `json:"name"`
	Ignored bool   `json:"canBeIgnored"` // by --ignore-preflight
	Cases   []struct {
		Text   string `json:"text"`
		Remedy string `json:"remedy,omitempty"`
	} `json:"cases"`
}

func allProblems() []explained {
	var all []explained
	if err := json.Unmarshal(problemTable, &all); err != nil {
		panic(err) // a test reads it
	}
	for i := range all {
		all[i].Ignored = all[i].ignorable()
	}
	return all
}

// is reports whether this is the problem of a name. Some names end in a value,
// such as port-6443.
func (e explained) is(name string) bool {
	return e.Name == name || regexp.MustCompile("^"+strings.ReplaceAll(e.Name, "NAME", "[a-z0-9]+")+"$").MatchString(name)
}

func (e explained) ignorable() bool {
	return len(preflight.CheckIgnored([]string{strings.ReplaceAll(e.Name, "NAME", "1")})) == 0 || strings.HasPrefix(e.Name, "cgroup-")
}

// Commands returns the command "explain", and the hidden ones that write pages. fresh
// returns all commands of the program, of a version.
func Commands(out io.Writer, fresh func() *cobra.Command, version string) []*cobra.Command {
	return []*cobra.Command{explainCommand(out), gendocsCommand(fresh), genmanCommand(version)}
}

func explainCommand(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain PROBLEM",
		Short: "Explain a problem by the name in brackets at the end of its message",
		Long: `Explain a problem by the name in brackets at the end of its message: every case
in which it is reported, and what to do. Values that depend on the case are "…".`,
		Example: "  kube-bootstrap explain docker-version\n  kube-bootstrap explain port-6443",
		ValidArgsFunction: command.FirstArg(func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return problemNames(), cobra.ShellCompDirectiveNoFileComp
		}),
	}
	format := output.AddFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		one, err := explain(strings.Trim(args[0], "[]"))
		if err != nil {
			return err
		}
		return format.Print(out, "Problem", one, one.print)
	}
	return c
}

func explain(name string) (explained, error) {
	for _, one := range allProblems() {
		if one.is(name) {
			one.Name = name
			return one, nil
		}
	}
	text := fmt.Sprintf("there is no problem %q", name)
	if config.IsSetting(name) {
		text = fmt.Sprintf("--%s is a setting, and a problem of this name says that a cluster or a host was set up with another value", name)
	} else if best := config.Nearest(name, problemNames()); best != "" {
		text += ", did you mean " + best + "?"
	}
	return explained{}, exit.Usage(errors.New(text))
}

func problemNames() (names []string) {
	for _, one := range allProblems() {
		names = append(names, one.Name)
	}
	return names
}

func (e explained) print(w io.Writer) {
	for _, one := range e.Cases {
		fmt.Fprintln(w, "message:  "+one.Text)
		if one.Remedy != "" {
			fmt.Fprintln(w, "remedy:   "+one.Remedy)
		}
		fmt.Fprintln(w)
	}
	if e.Ignored {
		fmt.Fprintln(w, "Where preflight reports it, --ignore-preflight "+e.Name+" ignores it.")
	}
}

// troubleshooting is docs/troubleshooting.md.
func troubleshooting() string {
	var b strings.Builder
	b.WriteString(troubles)
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;")
	for _, one := range allProblems() {
		name := "`" + one.Name + "`"
		for _, c := range one.Cases {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, cell.Replace(c.Text), cell.Replace(c.Remedy))
			name = ""
		}
	}
	return b.String()
}

//go:embed troubles.md
var troubles string
