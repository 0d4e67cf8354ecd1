package joining

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// joinToken is the output of `kube-bootstrap token create -o json`.
type joinToken struct {
	Token      string `json:"token"`
	CACertHash string `json:"caCertHash"`
	// CertificateKey is set if further control planes join.
	CertificateKey string `json:"certificateKey"`
}

// lentToken is a token that exists while a command on the first control plane runs. That command deletes
// it when its input ends, which happens also if this process is killed or the connection is lost.
type lentToken struct {
	joinToken
	// end ends the command, waits for it, and returns its error.
	end func() error
}

// tokenTTL is for a first control plane that is reset while the command runs.
const tokenTTL = time.Hour

// longestToken is more than the output of the command has, in bytes. An attacker may control the node.
const longestToken = 1 << 20

// lend creates a token for the nodes in scope.
func (j *Joining) lend(ctx context.Context, scope ...string) (token lentToken, err error) {
	err = retried(ctx, func() (err error) {
		token, err = j.lendOnce(ctx, scope)
		return err
	})
	return token, err
}

func (j *Joining) lendOnce(ctx context.Context, scope []string) (lentToken, error) {
	in, stop := io.Pipe()
	out, printed := io.Pipe()
	args := append([]string{
		j.Session.Provider.ProgramPath(), "token", "create", "--until-input-ends", "--ttl", tokenTTL.String(),
		"--description", "cluster up", "-o", "json",
	}, scope...)
	ended := make(chan error, 1)
	go func() {
		err := j.Session.Node(j.First.Name).Exec(context.WithoutCancel(ctx), host.Command{
			Args: args, Stdin: in, Stdout: printed,
		})
		_ = printed.CloseWithError(err)
		ended <- err
	}()
	token := lentToken{end: func() error { _ = stop.Close(); return <-ended }}
	if err := json.NewDecoder(io.LimitReader(out, longestToken)).Decode(&token.joinToken); err != nil {
		_ = out.CloseWithError(err)
		_ = token.end() // err is its error, or says that its output is no token
		return lentToken{}, fmt.Errorf("token create on %s: %w", j.First.Name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // the command waits until its output is read
	return token, nil
}
