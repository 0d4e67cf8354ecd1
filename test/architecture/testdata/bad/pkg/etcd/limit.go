package etcd

import (
	"context"
	"time"
)

const answerLimit = 3 * time.Second

func wait(ctx context.Context, limit time.Duration) context.Context {
	ctx, _ = context.WithTimeout(ctx, limit)
	return ctx
}
