package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// errDeclined is the answer no to the question of Confirm.
var errDeclined = errors.New("not confirmed: nothing was changed")

// AddYes adds the flag that confirms a removal. A command that removes nothing needs none.
func AddYes(c *cobra.Command, removes bool) *bool {
	yes := !removes
	if removes {
		c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	}
	return &yes
}

// asks reports whether somebody can be asked: in CI nobody answers, even on a terminal.
func asks(in, out *os.File, env func(string) string) bool {
	ci := env("CI")
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && (ci == "" || ci == "false")
}

// Confirm has the user confirm all losses, by --yes or by an answer on the terminal.
func (con *Console) Confirm(ctx context.Context, yes bool, losses func(context.Context) ([]string, error)) error {
	if yes {
		return nil
	}
	all, err := losses(ctx)
	switch {
	case err != nil:
		return exit.Firm(err)
	case len(all) == 0:
		return nil
	case !con.Asks:
		return exit.Firm(&step.Problem{
			Name: "confirmation", Text: "this removes " + strings.Join(all, ", ") + ", and there is no terminal to confirm that on",
			Remedy: "add --yes to remove that", Firm: true,
		})
	}
	fmt.Fprintf(con.Err, "This removes for good:\n  %s\nContinue? [y/N] ", strings.Join(all, "\n  "))
	answer, err := readLine(ctx, con.In)
	switch {
	case err != nil:
		return err
	case answer == "y" || answer == "yes":
		return nil
	}
	return errDeclined
}

// readLine returns a line in lower case. A Ctrl-C ends the wait for it.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // an error means no answer
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
