package etcd

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// silent is how long a check waits for etcd before it asks the other members.
const silent = time.Second

func (c MemberContainer) check(ctx context.Context) (step.Diff, error) {
	diff, err := c.service().Diff(ctx)
	if err != nil {
		return nil, err
	}
	if reason := c.ended(ctx); reason != nil {
		return step.Diff{"restart etcd: " + reason.Error()}, nil
	}
	if started, err := c.Member.Data.Started(); err == nil && started == "" && c.Member.Data.Exist() {
		diff = append(diff, "write "+startedFile)
	}
	if !c.Member.Data.Files.IsPrivate(DataDir) {
		diff = append(diff, "create "+DataDir+", for root only")
	}
	if len(diff) == 0 {
		return c.checkAnswers(ctx)
	}
	if c.Member.Data.hasWAL() {
		if err := c.Member.Outside(ctx); err != nil {
			return nil, err
		}
	}
	return diff, nil
}

// checkAnswers reads from etcd. If etcd is silent, it looks for the reason in etcd's log
// and at the other members.
func (c MemberContainer) checkAnswers(ctx context.Context) (step.Diff, error) {
	err := step.Watching(ctx, ends(c), func(ctx context.Context) error {
		return step.Watching(ctx, isOutside(c.Member), answersInTime(c.Member.Client))
	})
	if certain := difference(""); errors.As(err, &certain) {
		return step.Diff{string(certain)}, nil
	}
	return step.DiffOf(step.Serves(err), "wait for etcd to answer")
}

// difference is a certain result of a check, which ends its wait for an answer.
type difference string

func (d difference) Error() string { return string(d) }

// answersInTime waits some seconds longer if etcd is silent, because etcd may be about to end.
func answersInTime(c Client) func(context.Context) error {
	return func(ctx context.Context) error {
		err := c.Do(ctx, func(client *clientv3.Client) error { return c.answers(ctx, client) })
		if step.IsUnanswered(step.Serves(err)) {
			longer, cancel := step.Half(ctx)
			defer cancel()
			<-longer.Done()
		}
		return err
	}
}

func ends(c MemberContainer) func(context.Context) error {
	return func(ctx context.Context) error {
		err := c.follow(ctx, func(*step.Problem) bool { return true })
		if len(step.Problems(err)) == 0 {
			return nil
		}
		return difference("restart etcd: " + err.Error())
	}
}

func isOutside(m Member) func(context.Context) error {
	return func(ctx context.Context) error {
		if step.Pause(ctx, silent) != nil {
			return nil
		}
		if err := m.Outside(ctx); err != nil {
			return difference("run etcd as a member: " + err.Error())
		}
		return nil
	}
}
