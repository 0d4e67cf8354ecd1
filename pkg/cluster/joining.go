package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// joining lets the others in: each worker with a token for its node only, the
// control planes with one that is deleted at the end.
type joining struct {
	*fleet
	master member
	token  joinToken // of the control planes
}

// joinToken is what `kube-bootstrap token create -o json` prints.
type joinToken struct {
	Token      string `json:"token"`
	CACertHash string `json:"caCertHash"`
	// CertificateKey is there if further control planes join.
	CertificateKey string `json:"certificateKey"`
}

const (
	tokenPath = "/run/kube-bootstrap-join-token"
	tokenTTL  = time.Hour
)

// open creates the token of the control planes.
func (j *joining) open() step.Step {
	return step.Step{
		Name:  "create the token of the control planes",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"create a token"}, nil },
		Apply: func(ctx context.Context) (err error) {
			j.token, err = j.createToken(ctx, "--control-plane", "--reusable")
			return err
		},
	}
}

func (j *joining) createToken(ctx context.Context, scope ...string) (token joinToken, err error) {
	var out bytes.Buffer
	args := append([]string{binaryPath, "token", "create", "--ttl", tokenTTL.String(), "--description", "cluster up", "-o", "json"}, scope...)
	if err := j.node(j.master).Exec(ctx, driver.Exec{Args: args, Stdout: &out}); err != nil {
		return token, err
	}
	if err := json.Unmarshal(out.Bytes(), &token); err != nil {
		return token, fmt.Errorf("answer of token create on %s: %w", j.master.name, err)
	}
	return token, nil
}

// deleteToken also deletes a token after a run that failed or was interrupted,
// because it stays valid for an hour. One that was used is deleted already.
func (j *joining) deleteToken(ctx context.Context, token joinToken) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	id, _, _ := strings.Cut(token.Token, ".") // the part that is no secret
	return j.node(j.master).Exec(ctx, driver.Exec{Args: []string{binaryPath, "token", "delete", "--ignore-not-found", id}})
}

func (j *joining) worker(ctx context.Context, m member) error {
	if j.there[m.name] { // it refuses to run with other taints than its node has
		if err := j.mark(ctx, m); err != nil {
			return err
		}
	}
	token, err := j.createToken(ctx, "--node", m.name)
	if err != nil {
		return err
	}
	err = j.join(ctx, m, token, append([]string{"worker"}, j.WorkerArgs...), nil)
	if err := errors.Join(err, j.deleteToken(ctx, token)); err != nil {
		return err
	}
	return j.mark(ctx, m)
}

// mark makes a control plane apply the labels and taints of a worker, which its
// own kubelet may not change, and remember them, so that later settings can
// remove them.
func (j *joining) mark(ctx context.Context, m member) error {
	args := []string{"mark", m.name, "--progress", "json"}
	for _, arg := range m.spec.Args {
		if strings.HasPrefix(arg, "--node-label=") || strings.HasPrefix(arg, "--node-taint=") {
			args = append(args, arg)
		}
	}
	if len(args) == 4 {
		return nil
	}
	return j.relay(ctx, j.master, args, nil)
}

func (j *joining) furtherMaster(ctx context.Context, m member) error {
	env := []string{"KUBE_BOOTSTRAP_CERTIFICATE_KEY=" + j.token.CertificateKey}
	verb := []string{"master", "--join"}
	if j.alone() {
		verb = append(verb, "--no-dedicated")
	}
	return j.join(ctx, m, j.token, append(verb, j.MasterArgs...), env)
}

func (j *joining) join(ctx context.Context, m member, token joinToken, verb, env []string) error {
	node := j.node(m)
	if err := node.Put(ctx, tokenPath, 0o600, strings.NewReader(token.Token+"\n")); err != nil {
		return err
	}
	args := append(verb, "--progress", "json", "--master-ip", j.master.addr.String(),
		"--token-file", tokenPath, "--ca-cert-hash", token.CACertHash)
	err := j.relay(ctx, m, slices.Concat(args, j.bundleArgs(), m.spec.Args), env)
	removed := node.Exec(context.WithoutCancel(ctx), driver.Exec{Args: []string{"rm", "-f", tokenPath}})
	return errors.Join(err, removed)
}

// welcome has the control plane spread CoreDNS now, so that the first snapshot
// has CoreDNS where it belongs. What it cannot do now is left to the agent.
func (j *joining) welcome() step.Step {
	return todo("spread CoreDNS over the nodes", func(ctx context.Context) error {
		err := j.node(j.master).Exec(ctx, driver.Exec{Args: []string{binaryPath, "keep"}})
		var exit *driver.ExitError
		if errors.As(err, &exit) {
			step.Report(ctx, "left for later: "+err.Error(), 0, 0)
			return nil
		}
		return err
	})
}

// revoke deletes the token of the control planes after a run that failed. If
// the control plane that created it is gone, so is the token.
func (j *joining) revoke(ctx context.Context) {
	if j.token.Token != "" {
		_ = j.deleteToken(ctx, j.token)
	}
}

// close deletes the token of the control planes.
func (j *joining) close() step.Step {
	return step.Step{
		Name:  "delete the token of the control planes",
		Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{"delete a token"}, nil },
		Apply: func(ctx context.Context) error {
			if err := j.deleteToken(ctx, j.token); err != nil {
				return err
			}
			j.token = joinToken{}
			return nil
		},
	}
}
