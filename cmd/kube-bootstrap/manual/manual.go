// Package manual explains the problems that the program reports, and writes its
// pages: docs/, man pages and completions.
package manual

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/reference"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
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
		name := all[i].Name
		ignored := preflight.CheckIgnored([]string{strings.ReplaceAll(name, "NAME", "1")})
		all[i].Ignored = len(ignored) == 0 || strings.HasPrefix(name, "cgroup-")
	}
	return all
}

// is reports whether this is the problem of a name, which may end in a value, as port-6443 does.
func (e explained) is(name string) bool {
	return e.Name == name || regexp.MustCompile("^"+strings.ReplaceAll(e.Name, "NAME", "[a-z0-9]+")+"$").
		MatchString(name)
}

// Commands returns the command "explain", and the hidden commands that write the man pages and docs.
func Commands(out io.Writer, fresh func() *cobra.Command, version string) []*cobra.Command {
	return []*cobra.Command{explainCommand(out), gendocsCommand(fresh), genmanCommand(version)}
}

func explainCommand(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [PROBLEM]",
		Short: "Explain a problem by the name in brackets at the end of its message",
		Long: `Explain a problem by the name in brackets at the end of its message: every case
in which it is reported, and what to do. Values that depend on the case are "…".
Without a name, list the names of all problems.`,
		Example: "  kube-bootstrap explain docker-version\n  kube-bootstrap explain port-6443",
		ValidArgsFunction: command.FirstArg(func(*cobra.Command, []string, string) ([]cobra.Completion,
			cobra.ShellCompDirective) {
			return problemNames(), cobra.ShellCompDirectiveNoFileComp
		}),
	}
	format := output.AddFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			names := problemNames()
			return format.Print(out, "ProblemNames", names,
				func(w io.Writer) { fmt.Fprintln(w, strings.Join(names, "\n")) })
		}
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
	text := fmt.Sprintf("there is no problem %q", name) + cmp.Or(spelling.Meant(name, problemNames()),
		"; `kube-bootstrap explain` lists all names")
	if config.IsSetting(name) {
		text = fmt.Sprintf("--%s is a setting, and a problem of this name says that a cluster or a host was set up "+
			"with another value", name)
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

func troubleshooting() string {
	var b strings.Builder
	b.WriteString(troubles)
	cell := strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;")
	for _, one := range allProblems() {
		name := "`" + one.Name + "`"
		for _, c := range one.Cases {
			if !hasWords(c.Text) && c.Remedy == "" {
				continue
			}
			if !hasWords(c.Text) {
				c.Text = "the message states the cause"
			}
			if c.Remedy == "" {
				c.Remedy = "the message states it"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, cell.Replace(c.Text), cell.Replace(c.Remedy))
			name = ""
		}
	}
	return b.String()
}

// hasWords reports whether a text consists of more than values that depend on the case.
func hasWords(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

//go:embed troubles.md
var troubles string

// gendocsCommand writes the generated pages of docs/, for `make docs`.
func gendocsCommand(fresh func() *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "gendocs DIR", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			pages, err := Pages(fresh())
			if err != nil {
				return err
			}
			for name, text := range pages {
				if err := os.WriteFile(filepath.Join(args[0], name), []byte(text), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Pages returns the generated pages of docs/ by their names. root must not have been executed.
func Pages(root *cobra.Command) (map[string]string, error) {
	root.InitDefaultCompletionCmd()
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the commands by \"make docs\"; do not edit. -->\n# Command line\n\n")
	b.WriteString("stdout is data, stderr is progress and errors. [Exit codes](exit-codes.md), " +
		"[settings](configuration.md).\n\n")
	if err := page(&b, root); err != nil {
		return nil, err
	}
	return map[string]string{"cli.md": b.String(), "configuration.md": reference.Markdown(),
		"troubleshooting.md": troubleshooting()}, nil
}

// page writes a command and those below it, without the links between files.
func page(b *bytes.Buffer, c *cobra.Command) error {
	if c.Hidden || c.Name() == "help" || c.Parent() != nil && c.Parent().Name() == "completion" {
		return nil
	}
	var one bytes.Buffer
	if err := doc.GenMarkdown(c, &one); err != nil {
		return fmt.Errorf("%s: %w", c.CommandPath(), err)
	}
	text, _, _ := strings.Cut(one.String(), "### SEE ALSO")
	text, _, _ = strings.Cut(text, "### Options inherited from parent commands")
	b.WriteString(strings.TrimSpace(text) + "\n\n")
	for _, child := range c.Commands() {
		if err := page(b, child); err != nil {
			return err
		}
	}
	return nil
}

// genmanCommand writes man pages and completions as below /usr/share, for `make install` and `dist`.
func genmanCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use: "genman DIR", Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			man := filepath.Join(args[0], "man", "man1")
			if err := os.MkdirAll(man, 0o755); err != nil {
				return err
			}
			header := doc.GenManHeader{
				Title: "KUBE-BOOTSTRAP", Section: "1", Source: "kube-bootstrap " + version, Manual: "kube-bootstrap",
			}
			if err := doc.GenManTree(c.Root(), &header, man); err != nil {
				return err
			}
			return genCompletion(c.Root(), args[0])
		},
	}
}

func genCompletion(root *cobra.Command, dir string) error {
	for path, generate := range map[string]func(path string) error{
		"bash-completion/completions/kube-bootstrap": func(path string) error {
			return root.GenBashCompletionFileV2(path, true)
		},
		"zsh/site-functions/_kube-bootstrap": root.GenZshCompletionFile,
		"fish/vendor_completions.d/kube-bootstrap.fish": func(path string) error {
			return root.GenFishCompletionFile(path, true)
		},
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := generate(path); err != nil {
			return err
		}
	}
	return nil
}
