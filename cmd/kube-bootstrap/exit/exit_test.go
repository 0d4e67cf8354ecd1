package exit

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
		{context.Background(), nil, ok},
		{context.Background(), errors.New("x"), failure},
		{context.Background(), Usage(errors.New("x")), usage},
		{context.Background(), errors.Join(fmt.Errorf("check swap: %w", problem), problem), preflight},
		{context.Background(), fmt.Errorf("%w (process 7)", host.ErrLocked), locked},
		{context.Background(), ErrNotUpToDate, notUpToDate},
		{stopped, ErrNotUpToDate, notUpToDate},
		{context.Background(), Resume(problem, "again"), failure},
		{stopped, Resume(context.Canceled, "again"), interrupted},
	} {
		if got := codeOf(c.ctx, c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	one, two := &step.Problem{Name: "docker", Text: "no Docker"}, &step.Problem{Name: "swap", Text: "swap is on"}
	err := OnlyProblems(errors.Join(fmt.Errorf("check Docker: %w", errors.Join(one, two)),
		errors.New("check x: broken")))
	if got := strings.ReplaceAll(err.Error(), "\n",
		"|"); got != "no Docker [docker]|swap is on [swap]|check x: broken" {
		t.Error(got)
	}
}

func TestEachErrorIsALineOfItsOwn(t *testing.T) {
	var out bytes.Buffer
	err := errors.Join(errors.New("one"), errors.Join(errors.New("two\ntail of its log"), errors.New("three")))
	Tell(context.Background(), &out, Resume(err, "do it again"), false)
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

func TestAProblemFoundTwiceIsNamedOnce(t *testing.T) {
	skew, swap := &step.Problem{Name: "version-skew"}, &step.Problem{Name: "swap"}
	if got, want := Ignorable([]*step.Problem{skew, swap, skew, {Name: "docker", Firm: true}}),
		"version-skew,swap"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
