package offline

import "runtime/debug"

// Turn lets those who load from one bundle at the same time unpack it one after
// the other: whoever does holds all that the compression looks back to, which
// is most of the memory that loading takes.
type Turn chan struct{}

// NewTurn makes the turn that all loads of a host share.
func NewTurn() Turn { return make(Turn, 1) }

// As long as so much is held, what is garbage may not pile up to as much again.
const garbagePercent, usualPercent = 5, 100

func (t Turn) take() {
	if t != nil {
		t <- struct{}{}
		debug.FreeOSMemory()
		debug.SetGCPercent(garbagePercent)
	}
}

// give passes the turn on, and the memory before it.
func (t Turn) give() {
	if t != nil {
		debug.SetGCPercent(usualPercent)
		debug.FreeOSMemory()
		<-t
	}
}

// inTurn has the bundle and its base unpacked in turn with others.
func inTurn(turn Turn) Option {
	return func(b *Bundle) error {
		b.turn = turn
		if b.base != nil {
			b.base.turn = turn
		}
		return nil
	}
}
