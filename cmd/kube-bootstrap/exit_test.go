package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestExitCodes(t *testing.T) {
	problem := &step.Problem{Name: "swap", Text: "swap is on"}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{context.Background(), nil, exitOK},
		{context.Background(), errors.New("x"), exitFailure},
		{context.Background(), &usageError{errors.New("x")}, exitUsage},
		{context.Background(), errors.Join(fmt.Errorf("check swap: %w", problem), problem), exitPreflight},
		{context.Background(), fmt.Errorf("%w (process 7)", host.ErrLocked), exitLocked},
		{context.Background(), errNotInPlace, exitNotInPlace},
		{context.Background(), &resumeError{problem, "again"}, exitFailure},
		{stopped, &resumeError{context.Canceled, "again"}, exitInterrupted},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	one, two := &step.Problem{Name: "docker", Text: "no Docker"}, &step.Problem{Name: "swap", Text: "swap is on"}
	err := onlyProblems(errors.Join(fmt.Errorf("check Docker: %w", errors.Join(one, two)), errors.New("check x: broken")))
	if got := strings.ReplaceAll(err.Error(), "\n", "|"); got != "no Docker [docker]|swap is on [swap]|check x: broken" {
		t.Error(got)
	}
}

func TestEachErrorIsALineOfItsOwn(t *testing.T) {
	var out bytes.Buffer
	p := &program{err: &out}
	p.tell(context.Background(), &resumeError{errors.Join(errors.New("one"), errors.Join(errors.New("two\ntail of its log"), errors.New("three"))), "do it again"})
	text := out.String()
	for _, want := range []string{"] one\n", "] two\n    tail of its log\n", "] three\n", "] do it again\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "!!! ["); n != 4 {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestTokenLeavesTheArguments(t *testing.T) {
	for _, c := range []struct{ args, left, token string }{
		{"worker --token t --master-ip i", "worker --master-ip i", "t"},
		{"worker --token=t", "worker", "t"},
		{"worker --token-file f", "worker --token-file f", ""},
		{"worker -- --token t", "worker -- --token t", ""},
		{"worker --token", "worker --token", ""},
		{"kubectl --token t get pods", "kubectl --token t get pods", ""},
		{"cluster kubectl get pods --token t", "cluster kubectl get pods --token t", ""},
	} {
		left, hidden := withoutSecrets(strings.Fields(c.args))
		token := strings.TrimPrefix(strings.Join(hidden, " "), "KUBE_BOOTSTRAP_TOKEN=")
		if strings.Join(left, " ") != c.left || token != c.token {
			t.Errorf("%s: %v, %q", c.args, left, token)
		}
	}
}
