package manual

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/reference"
)

// gendocsCommand writes the pages of docs/ that are made from the program
// itself; `make docs` calls it, and a test compares.
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

// Pages returns the pages of docs/ that are made from the program, by their file
// names. root must not have been executed.
func Pages(root *cobra.Command) (map[string]string, error) {
	root.InitDefaultCompletionCmd()
	var b bytes.Buffer
	b.WriteString("<!-- Generated from the commands by \"make docs\"; do not edit. -->\n# Command line\n\n")
	b.WriteString("stdout is data, stderr is progress and errors. [Exit codes](exit-codes.md), [settings](configuration.md).\n\n")
	if err := page(&b, root); err != nil {
		return nil, err
	}
	return map[string]string{"cli.md": b.String(), "configuration.md": reference.Markdown(), "troubleshooting.md": troubleshooting()}, nil
}

// page writes a command and those below it, without the links between files
// that cobra makes.
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

// genmanCommand writes the man pages and the completion of the shells below a
// directory, as they lie below /usr/share. `make install` and `make dist` call it.
func genmanCommand(version string) *cobra.Command {
	return &cobra.Command{
		Use: "genman DIR", Hidden: true,
		RunE: func(c *cobra.Command, args []string) error {
			man := filepath.Join(args[0], "man", "man1")
			if err := os.MkdirAll(man, 0o755); err != nil {
				return err
			}
			header := doc.GenManHeader{Title: "KUBE-BOOTSTRAP", Section: "1", Source: "kube-bootstrap " + version, Manual: "kube-bootstrap"}
			if err := doc.GenManTree(c.Root(), &header, man); err != nil {
				return err
			}
			return genCompletion(c.Root(), args[0])
		},
	}
}

func genCompletion(root *cobra.Command, dir string) error {
	for _, shell := range []struct {
		path string
		gen  func(path string) error
	}{
		{"bash-completion/completions/kube-bootstrap", func(path string) error { return root.GenBashCompletionFileV2(path, true) }},
		{"zsh/site-functions/_kube-bootstrap", root.GenZshCompletionFile},
		{"fish/vendor_completions.d/kube-bootstrap.fish", func(path string) error { return root.GenFishCompletionFile(path, true) }},
	} {
		path := filepath.Join(dir, shell.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := shell.gen(path); err != nil {
			return err
		}
	}
	return nil
}
