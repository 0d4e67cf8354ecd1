package console

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
)

// Questions returns what asks the user on the terminal; nil if there is none.
func (con *Console) Questions() ssh.Questions {
	if !con.Asks {
		return nil
	}
	return questions{con}
}

type questions struct{ con *Console }

// Confirm asks a question that is answered by yes or no.
func (q questions) Confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprint(q.con.Err, question+" [y/N] ")
	answer, err := readLine(ctx, q.con.In)
	return answer == "y" || answer == "yes", err
}

// Secret asks for a text that the terminal does not show.
func (q questions) Secret(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.con.Err, prompt)
	defer fmt.Fprintln(q.con.Err)
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = term.Restore(fd, before) }) // an interrupt ends the program
	defer stop()
	text, err := term.ReadPassword(fd)
	return string(text), err
}
