package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// become is how commands of a machine run as root.
type become struct {
	command  []string // before the command
	password string   // secret, the first line of its standard input; "" for none
}

// sudoPassword is asked for once. All machines get the same one.
type sudoPassword struct {
	ask Questions

	once     sync.Once
	password string
	err      error
}

// sudoScript prints how the user of a connection becomes root.
const sudoScript = `if [ "$(id -u)" = 0 ]; then echo root
elif ! command -v sudo >/dev/null; then echo none
elif said=$(sudo -n true 2>&1); then echo free
else echo "password $said"; fi`

func (s *sudoPassword) find(ctx context.Context, t target, client *cryptossh.Client) (become, error) {
	if t.user == "root" {
		return become{}, nil
	}
	out, err := output(ctx, client, become{}, sudoScript)
	if err != nil {
		return become{}, fmt.Errorf("machine %s: find out how to become root: %w", t.name, err)
	}
	switch kind, _, _ := strings.Cut(strings.TrimSpace(out), " "); kind {
	case "root":
		return become{}, nil
	case "free":
		return become{command: []string{"sudo", "-n", "--"}}, nil
	case "none":
		return become{}, &step.Problem{
			Name: "sudo", Text: fmt.Sprintf("machine %s: user %s is not root, and there is no sudo", t.name, t.user),
			Remedy: "install sudo, or set ssh.user to root", Firm: true,
		}
	}
	return s.withPassword(ctx, t, client, strings.TrimPrefix(strings.TrimSpace(out), "password "))
}

// withPassword asks for the password and tries it. The option -k makes sudo always read the
// password, so that the rest of the standard input is that of the command.
func (s *sudoPassword) withPassword(
	ctx context.Context, t target, client *cryptossh.Client, said string,
) (become, error) {
	if s.ask == nil {
		return become{}, &step.Problem{
			Name: "sudo-password",
			Text: fmt.Sprintf("machine %s: sudo of user %s refuses to run without a password: %s",
				t.name, t.user, said),
			Remedy: "run the command on a terminal, or allow the user NOPASSWD in sudoers", Firm: true,
		}
	}
	s.once.Do(func() { s.password, s.err = s.ask.Secret(ctx, "Password of "+t.user+" for sudo: ") })
	if s.err != nil {
		return become{}, s.err
	}
	how := become{command: []string{"sudo", "-k", "-S", "-p", "", "--"}, password: s.password}
	if _, err := output(ctx, client, how, "true"); err != nil {
		return become{}, &step.Problem{
			Name: "sudo-password", Text: fmt.Sprintf("machine %s: sudo refuses user %s: %v", t.name, t.user, err),
			Remedy: "give the password of this user, who must be in sudoers", Firm: true,
		}
	}
	return how, nil
}

// output runs a script on a connection and returns its output.
func output(ctx context.Context, client *cryptossh.Client, how become, script string) (string, error) {
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var out, errs bytes.Buffer
	session.Stdout, session.Stderr = &out, &errs
	session.Stdin = strings.NewReader(how.input(nil))
	err = session.Run(quoted(append(how.command, "/bin/sh", "-c", script)))
	if err != nil && strings.TrimSpace(errs.String()) != "" {
		err = errors.New(strings.TrimSpace(errs.String()))
	}
	return out.String(), err
}
