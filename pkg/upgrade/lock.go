package upgrade

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
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
	stepKey  = "kube-bootstrap.dev/step"

	// renewPause is the time between two renewals of the lock, lookPause that between two looks of another run.
	renewPause, lookPause = 3 * time.Second, time.Second
	// deadLooks is the number of looks without a renewal after which the holder is dead. Only answers count,
	// because nobody can renew the lock while a single API server is replaced.
	deadLooks = 15
)

//go:embed lock.yaml
var lockObjects []byte

// Lock is the lock of all upgrades of a cluster: a Lease that its holder renews. Clocks of hosts differ, so a run
// that waits for it compares versions of the Lease and no times.
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
func (h Holding) String() string {
	return fmt.Sprintf("%s upgrades the cluster since %s: %s", h.Holder, h.Since.Local().Format(time.DateTime), h.Step)
}

// Held returns who holds the lock; nil if nobody does, if nothing answers, or if it was not renewed for a minute.
func (l *Lock) Held(ctx context.Context) *Holding {
	lease, err := l.get(ctx)
	if err != nil || holderOf(lease) == "" || lease.Spec.RenewTime == nil {
		return nil
	}
	if time.Since(lease.Spec.RenewTime.Time) > time.Minute {
		return nil
	}
	return holdingOf(lease)
}

func holdingOf(lease *coordinationv1.Lease) *Holding {
	who, _, _ := strings.Cut(holderOf(lease), "/")
	held := &Holding{Holder: who, Step: lease.Annotations[stepKey]}
	if lease.Spec.AcquireTime != nil {
		held.Since = lease.Spec.AcquireTime.Time
	}
	return held
}

// Prepare is the step that creates the Lease, and lets workers use it. Only an administrator may.
func (l *Lock) Prepare() step.Step {
	return kube.ApplyStep("upgrade-lease", "prepare the lock of the upgrade", l.API, func() ([]*kube.Object, error) {
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
		lease, err := l.get(ctx)
		if err != nil {
			return err
		}
		free, err := l.free(lease, &seen)
		if err != nil {
			return err
		}
		if free {
			if err = l.claim(ctx, lease); !apierrors.IsConflict(err) {
				return err
			}
		}
		step.Report(ctx, "held by "+holdingOf(lease).Holder, 0, 0)
		if err := step.Pause(ctx, lookPause); err != nil {
			return err
		}
	}
}

// looks is what a run has seen of the lock of another one.
type looks struct {
	first string // resource version
	count int
}

// free reports whether the run may hold the lock now. A holder that renews it is alive, which is an error.
func (l *Lock) free(lease *coordinationv1.Lease, seen *looks) (bool, error) {
	holder := holderOf(lease)
	if holder == l.Holder || holder == "" && !l.Nested {
		return true, nil
	}
	if seen.first == "" {
		seen.first = lease.ResourceVersion
	}
	seen.count++
	if l.Nested { // the holder takes the lock after its own looks
		return false, lockedAfter(lease, seen.count > 2*deadLooks)
	}
	return seen.count > deadLooks, lockedAfter(lease, lease.ResourceVersion != seen.first)
}

func lockedAfter(lease *coordinationv1.Lease, certain bool) error {
	if !certain {
		return nil
	}
	return locked(lease)
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
	lease, err := l.get(context.Background())
	if err != nil || holderOf(lease) != l.Holder {
		return
	}
	lease.Spec.HolderIdentity, lease.Annotations = nil, nil
	_ = l.update(context.Background(), lease)
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

func (l *Lock) claim(ctx context.Context, lease *coordinationv1.Lease) error {
	if l.Nested {
		return nil
	}
	now := metav1.NowMicro()
	if holderOf(lease) != l.Holder {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &l.Holder, &now
	lease.Annotations = map[string]string{stepKey: l.at()}
	return l.update(ctx, lease)
}

func (l *Lock) update(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	return l.API.Do(func(client kubernetes.Interface) error {
		_, err := client.CoordinationV1().Leases(lease.Namespace).Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// get reads the lock. A worker may not read it before a control plane has prepared it [upgrade-incomplete].
func (l *Lock) get(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	lease, err := kube.Ask(l.API, func(client kubernetes.Interface) (*coordinationv1.Lease, error) {
		return client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, lockName, metav1.GetOptions{})
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		err = &step.Problem{Name: "upgrade-incomplete", Firm: true, Text: "no control plane has begun an upgrade",
			Remedy: "run `kube-bootstrap upgrade apply` on the control planes first"}
	}
	return lease, err
}

func holderOf(lease *coordinationv1.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func locked(lease *coordinationv1.Lease) error {
	text := "the lock of the upgrade was given back"
	if holderOf(lease) != "" {
		text = holdingOf(lease).String()
	}
	return &step.Problem{Name: "upgrade-locked", Firm: true, Text: text,
		Remedy: "wait until that command has ended; if it was killed, its lock lapses within 20 seconds"}
}

func isLocked(err error) bool {
	problems := step.Problems(err)
	return len(problems) == 1 && problems[0].Name == "upgrade-locked"
}
