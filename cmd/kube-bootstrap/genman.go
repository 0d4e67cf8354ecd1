package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// genmanCommand writes the man pages and the completion of the shells below a
// directory, as they lie below /usr/share. `make install` and `make dist` call it.
func (p *program) genmanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "genman DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			man := filepath.Join(args[0], "man", "man1")
			if err := os.MkdirAll(man, 0o755); err != nil {
				return err
			}
			header := doc.GenManHeader{Title: "KUBE-BOOTSTRAP", Section: "1", Source: "kube-bootstrap " + programVersion(), Manual: "kube-bootstrap"}
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
