package upgrade

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// HolderFlag is the flag with which `cluster upgrade` gives the holder of its lock to the commands on nodes.
const HolderFlag = "lock-holder"

const (
	lockName = "kube-bootstrap-upgrade"

	// The keys of its data.
	holderKey  = "holder"
	stepKey    = "step"
	sinceKey   = "since"
	renewedKey = "renewed"

	// renewPause is the time between two renewals of the lock, lookPause that between two looks of another run.
	renewPause, lookPause = 3 * time.Second, time.Second
	// deadLooks is the number of looks without a renewal after which the holder is dead. Only answers count,
	// because nobody can renew the lock while a single API server is replaced.
	deadLooks = 15
)

//go:embed lock.yaml
var lockObjects []byte

// Lock is the lock of all upgrades of a cluster: a ConfigMap that its holder renews. Clocks of hosts differ, so a run
// that waits for it compares versions of the ConfigMap and no times.
type Lock struct {
	API    kube.Connect
	Holder string // "root@node-1/4f1c": who, and the run
	Nested bool   // the holder is another process, which has started this one

	mu   sync.Mutex
	step string
	end  context.CancelCauseFunc
	done chan struct{}
}

// Holding is the state of a held lock, as `status` shows it.
type Holding struct {
	Holder string    `json:"holder"`
	Step   string    `json:"step"`
	Since  time.Time `json:"since"`
}

// String returns what `status` says about the lock.
func (h Holding) String() string { return h.sentence() }

func (h Holding) sentence() string {
	return fmt.Sprintf("%s upgrades the cluster since %s: %s", h.Holder, h.Since.Local().Format(time.DateTime), h.Step)
}

// Held returns who holds the lock; nil if nobody does, if nothing answers, or if it was not renewed for a minute.
func (l *Lock) Held(ctx context.Context) *Holding {
	state, err := l.get(ctx)
	if err != nil || state.Data[holderKey] == "" {
		return nil
	}
	renewed, err := time.Parse(time.RFC3339Nano, state.Data[renewedKey])
	if err != nil || time.Since(renewed) > time.Minute {
		return nil
	}
	return holdingOf(state)
}

func holdingOf(state *corev1.ConfigMap) *Holding {
	who, _, _ := strings.Cut(state.Data[holderKey], "/")
	since, _ := time.Parse(time.RFC3339Nano, state.Data[sinceKey])
	return &Holding{Holder: who, Step: state.Data[stepKey], Since: since}
}

// Prepare is the step that creates the ConfigMap, and lets workers use it. Only an administrator may.
func (l *Lock) Prepare() step.Step {
	return kube.ApplyStep("upgrade-lock-object", "prepare the lock of the upgrade", l.API, func() ([]*kube.Object, error) {
		return kube.Objects(lockObjects)
	})
}

// TakeStep is the step that takes the lock.
func (l *Lock) TakeStep() step.Step {
	return step.Always("upgrade-lock", "take the lock of the upgrade", l.take)
}

// take waits until nobody else holds the lock, and takes or renews it [upgrade-locked].
func (l *Lock) take(ctx context.Context) error {
	var seen looks
	for {
		if taken, err := l.try(ctx, &seen); taken || err != nil {
			return err
		}
		if err := step.Pause(ctx, lookPause); err != nil {
			return err
		}
	}
}

// try looks at the lock once, and takes it if it is free.
func (l *Lock) try(ctx context.Context, seen *looks) (taken bool, err error) {
	state, err := l.get(ctx)
	if err != nil {
		return false, seen.noAnswer(err)
	}
	free, err := l.free(state, seen)
	if err != nil || !free {
		return false, err
	}
	if err = l.claim(ctx, state); apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// looks is what a run has seen of the lock of another one.
type looks struct {
	first      string // resource version
	count      int
	unanswered int
}

// noAnswer returns the error of the last look, unless an API server that starts may still answer.
func (s *looks) noAnswer(err error) error {
	if s.unanswered++; s.unanswered <= deadLooks {
		return nil
	}
	return err
}

// free reports whether the run may hold the lock now. A holder that renews it is alive, which is an error.
func (l *Lock) free(state *corev1.ConfigMap, seen *looks) (bool, error) {
	holder := state.Data[holderKey]
	if holder == l.Holder || holder == "" && !l.Nested {
		return true, nil
	}
	if seen.first == "" {
		seen.first = state.ResourceVersion
	}
	seen.count++
	if l.Nested { // the holder takes the lock after its own looks
		return false, lockedAfter(state, seen.count > 2*deadLooks)
	}
	return seen.count > deadLooks, lockedAfter(state, state.ResourceVersion != seen.first)
}

func lockedAfter(state *corev1.ConfigMap, certain bool) error {
	if !certain {
		return nil
	}
	return locked(state)
}

// Keep renews the lock until Release. The returned context ends when another run has taken it.
func (l *Lock) Keep(ctx context.Context) context.Context {
	ctx, l.end = context.WithCancelCause(ctx)
	l.done = make(chan struct{})
	go l.renew(ctx)
	return ctx
}

func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	for step.Pause(ctx, renewPause) == nil {
		if err := l.take(ctx); isLocked(err) {
			l.end(err)
		}
	}
}

// Release ends Keep, and gives the lock back. Without an answer of an API server, the lock lapses.
func (l *Lock) Release() {
	l.end(context.Canceled)
	<-l.done
	if l.Nested {
		return
	}
	state, err := l.get(context.Background())
	if err != nil || state.Data[holderKey] != l.Holder {
		return
	}
	state.Data = nil
	_ = l.update(context.Background(), state)
}

// At records the step of the holder, which others see after the next renewal.
func (l *Lock) At(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.step = name
}

func (l *Lock) at() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.step
}

func (l *Lock) claim(ctx context.Context, state *corev1.ConfigMap) error {
	if l.Nested {
		return nil
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	since := now
	if state.Data[holderKey] == l.Holder {
		since = state.Data[sinceKey]
	}
	state.Data = map[string]string{holderKey: l.Holder, stepKey: l.at(), sinceKey: since, renewedKey: now}
	return l.update(ctx, state)
}

func (l *Lock) update(ctx context.Context, state *corev1.ConfigMap) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return l.API.Do(func(client kubernetes.Interface) error {
		_, err := client.CoreV1().ConfigMaps(state.Namespace).Update(ctx, state, metav1.UpdateOptions{})
		return err
	})
}

// get reads the lock. A worker may not read it before a control plane has prepared it [upgrade-incomplete].
func (l *Lock) get(ctx context.Context) (*corev1.ConfigMap, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	state, err := kube.Ask(l.API, func(client kubernetes.Interface) (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, lockName, metav1.GetOptions{})
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		err = &step.Problem{Name: "upgrade-incomplete", Firm: true, Text: "no control plane has begun an upgrade",
			Remedy: "run `kube-bootstrap upgrade apply` on the control planes first"}
	}
	return state, err
}

func locked(state *corev1.ConfigMap) error {
	if state.Data[holderKey] == "" {
		return refusedByLock("the lock of the upgrade was given back")
	}
	return refusedByLock(holdingOf(state).sentence())
}

func refusedByLock(text string) error {
	return &step.Problem{Name: "upgrade-locked", Firm: true, Text: text,
		Remedy: "wait until that command has ended; if it was killed, its lock lapses within 20 seconds"}
}

func isLocked(err error) bool {
	problems := step.Problems(err)
	return len(problems) == 1 && problems[0].Name == "upgrade-locked"
}
