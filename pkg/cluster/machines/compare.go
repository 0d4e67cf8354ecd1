package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// compare finds the machines on which `master` or `worker` would change nothing. It asks all machines
// concurrently, so that a run without a difference takes as long as the slowest machine.
func (r *run) compare(ctx context.Context, ready []Machine) {
	var mu sync.Mutex
	r.same = map[string]bool{}
	r.concurrently(ready, func(m Machine) error {
		if !r.comparable(ctx, m) {
			return nil
		}
		changes, err := r.changes(ctx, m)
		mu.Lock()
		defer mu.Unlock()
		r.same[m.Spec.Name] = err == nil && len(changes) == 0 // an error returns with the role
		return nil
	})
}

// comparable reports whether only the machine itself can tell what its role would change.
func (r *run) comparable(ctx context.Context, m Machine) bool {
	if !r.joined(m) {
		return false
	}
	if !r.isFirst(m) {
		return true
	}
	if len(r.options.Files) > 0 && r.apply(ctx, m.Spec.Name, step.Plan{r.manifests()}) != nil {
		return false
	}
	differs, err := r.bundleDiffers(ctx)
	return err == nil && !differs
}

func (r *run) bundleDiffers(ctx context.Context) (bool, error) {
	if r.options.Bundle == "" {
		return false, nil
	}
	return r.files.differs(ctx, r.bundle(), r.first.Spec.Name)
}

// changes returns the steps of `kube-bootstrap ROLE --dry-run` that would change something.
func (r *run) changes(ctx context.Context, m Machine) (changes []string, err error) {
	command := slices.Concat([]string{r.provider.ProgramPath()}, r.command(m), []string{"--dry-run", "-o", "json"})
	out, err := access.Output(ctx, r.provider.Node(m.Spec.Name), command...)
	if err != nil {
		return nil, err
	}
	var report struct {
		Items []struct{ Step string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return nil, fmt.Errorf("machine %s: dry run: %w", m.Spec.Name, err)
	}
	for _, one := range report.Items {
		changes = append(changes, one.Step)
	}
	return changes, nil
}
