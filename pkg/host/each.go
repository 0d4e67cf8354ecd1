package host

import (
	"context"
	"errors"
	"sync"
)

// Each calls do for all elements, also after an error, and joins the errors.
func Each[T any](all []T, do func(T) error) error {
	var errs []error
	for _, one := range all {
		errs = append(errs, do(one))
	}
	return errors.Join(errs...)
}

// Together calls do for all elements concurrently, and joins the errors.
func Together[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		wg.Go(func() { errs[i] = do(one) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Concurrently calls all functions at the same time, and joins the errors.
func Concurrently(ctx context.Context, all ...func(context.Context) error) error {
	return Together(all, func(one func(context.Context) error) error { return one(ctx) })
}
