package step

import (
	"context"
	"time"
)

// DefaultLimit is the limit of a step without its own.
const DefaultLimit = 5 * time.Minute

// A Check must answer in seconds, because status and a dry run wait for all of
// them. Its limit is a thirtieth of the step's limit: ten seconds of the
// default. A longer limit indicates a slow host, so its Checks may take longer
// too.
const (
	checkPart     = 30
	minCheckLimit = 10 * time.Second
)

type limitKey struct{}

// WithLimit returns a context in which each wait and each request may take
// limit. The Runner calls it with the limit of each step.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// Limit returns how long a wait or a request may take.
func Limit(ctx context.Context) time.Duration {
	if limit, ok := ctx.Value(limitKey{}).(time.Duration); ok && limit > 0 {
		return limit
	}
	return DefaultLimit
}

// Limited returns a context for a request that ends after the limit.
func Limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, Limit(ctx))
}

// CheckLimit returns how long a Check may take.
func CheckLimit(ctx context.Context) time.Duration {
	return max(Limit(ctx)/checkPart, minCheckLimit)
}

// Checking returns a context for a request that must end in seconds: in a
// Check, or where the caller can continue without an answer.
func Checking(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, CheckLimit(ctx))
}

// Half returns a context that ends after half of the remaining time. The
// caller uses the other half to find out why there was no answer.
func Half(ctx context.Context) (context.Context, context.CancelFunc) {
	if l, ok := ctx.Value(limitedKey{}).(*limited); ok {
		return within(ctx, l.rest()/2)
	}
	end, ok := ctx.Deadline()
	if !ok {
		return Checking(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
