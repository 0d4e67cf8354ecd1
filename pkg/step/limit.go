package step

import (
	"context"
	"time"
)

// DefaultLimit is the limit of a step that was given none.
const DefaultLimit = 5 * time.Minute

// A Check answers in seconds, as status and a dry run wait for all of them: in
// a thirtieth of the limit, which is ten seconds of the default. A longer limit
// says that the host is slow, so its Checks may take longer too.
const (
	checkPart     = 30
	minCheckLimit = 10 * time.Second
)

type limitKey struct{}

// WithLimit returns a context in which a wait, and a request, may take limit.
// The Runner calls it with the limit of each step.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// Limit returns how long a wait, or a request, may take.
func Limit(ctx context.Context) time.Duration {
	if limit, ok := ctx.Value(limitKey{}).(time.Duration); ok && limit > 0 {
		return limit
	}
	return DefaultLimit
}

// Limited returns the context of a request, which ends after the limit.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, Limit(ctx))
}

// CheckLimit returns how long a Check may take.
func CheckLimit(ctx context.Context) time.Duration {
	return max(Limit(ctx)/checkPart, minCheckLimit)
}

// Checking returns the context of a look that must end in seconds: of a Check,
// or of a courtesy that nobody waits for.
func Checking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, CheckLimit(ctx))
}

// Half returns a context that ends when half of the remaining time is over: for
// a question whose silence is to be explained in the other half.
func Half(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return Checking(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
