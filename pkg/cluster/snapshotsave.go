package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SaveSnapshot keeps what all hosts of a cluster have on their disks, under a
// name. The hosts stand still while it is copied, all of them at the same
// moment, and go on afterwards.
func SaveSnapshot(ctx context.Context, options Options, name string, emit func(Event)) error {
	return withSnapshots(ctx, options, emit, func(f *fleet) error {
		s := &saving{fleet: f, name: name, spare: spare}
		if err := s.look(ctx); err != nil {
			return err
		}
		return f.run(ctx, s.rows())
	})
}

// withSnapshots does something that no second run may do at the same time.
func withSnapshots(ctx context.Context, options Options, emit func(Event), do func(*fleet) error) error {
	f, err := open(options, emit)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	if err := f.docker.Answers(ctx); err != nil {
		return f.noAnswer(err)
	}
	if err := f.mustExist(ctx); err != nil {
		return err
	}
	release, err := f.lockCache(ctx, "snapshot-"+f.Name)
	if err != nil {
		return err
	}
	defer release()
	return do(f)
}

// run walks rows whose leftovers the next run takes away.
func (f *fleet) run(ctx context.Context, rows step.Plan) error {
	runner := &step.Runner{Emit: func(e step.Event) { f.emit(Event{Event: e}) }}
	return runner.Do(ctx, rows)
}

// saving is a snapshot while it is made.
type saving struct {
	*fleet
	name  string
	hosts []docker.KeptMachine
	bytes int64
	spare int64
}

// look names what stands in the way.
func (s *saving) look(ctx context.Context) error {
	if !validName.MatchString(s.name) {
		return &step.Problem{Name: "snapshot-name", Text: fmt.Sprintf("%q can not be the name of a snapshot", s.name),
			Remedy: "use lower-case letters, digits and -, a letter first, at most 40"}
	}
	all, err := s.snapshots(ctx)
	if err != nil {
		return err
	}
	if _, taken := all[s.name]; taken {
		return &step.Problem{Name: "snapshot-exists", Text: "cluster " + s.Name + " has a snapshot " + s.name + " already",
			Remedy: "use another name, or run `kube-bootstrap cluster snapshot remove " + s.name + " --name " + s.Name + "` first"}
	}
	if s.hosts, err = s.keptMachines(ctx); err != nil {
		return err
	}
	if len(s.hosts) == 0 {
		return s.hostsGone()
	}
	return s.room(ctx)
}

func (f *fleet) keptMachines(ctx context.Context) ([]docker.KeptMachine, error) {
	found, err := f.found(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]docker.KeptMachine, len(found))
	err = each(len(found), func(i int) (err error) {
		all[i], err = f.docker.Kept(ctx, found[i].Name, true)
		if errdefs.IsNotFound(err) {
			return nil // its removal, of a run that was killed, has just ended
		}
		return err
	})
	return slices.DeleteFunc(all, func(m docker.KeptMachine) bool { return m.Name == "" }), err
}

// each does one thing for every number below n, all at the same time.
func each(n int, do func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// What an engine's disk shall have left, in bytes: more after a snapshot that
// nobody asked for.
const (
	spare      = 2 << 30
	spareFirst = 4 << 30
)

// room compares what the copies take with what is free. Hosts on a disk that
// is full lose more than a snapshot.
func (s *saving) room(ctx context.Context) error {
	var volumes []string
	for _, h := range s.hosts {
		s.bytes += h.Bytes
		volumes = append(volumes, s.ownVolumes(h.Machine)...)
	}
	used, free, err := s.docker.Measure(ctx, s.Name, s.hosts[0].ImageID, volumes)
	if err != nil {
		return err
	}
	s.bytes += used
	if free < s.bytes+s.spare {
		return &step.Problem{Name: "snapshot-space",
			Text:   fmt.Sprintf("a snapshot of cluster %s takes %d MB, the engine's disk has %d MB free", s.Name, s.bytes/1e6, free/1e6),
			Remedy: "free some, or remove a snapshot"}
	}
	return nil
}

func (s *saving) rows() step.Plan {
	return step.Plan{
		{todo("remove what a killed run left", s.sweep)},
		{todo(fmt.Sprintf("copy %d hosts as they stand, %d MB", len(s.hosts), s.bytes/1e6), s.copyHosts)},
		{todo("keep snapshot "+s.name, s.note)},
	}
}

// todo is a step that is always done, as its result is never in place before.
func todo(name string, do func(context.Context) error) step.Step {
	return step.Step{
		Name: name, Waits: true,
		Check: func(context.Context) (step.Diff, error) { return step.Diff{name}, nil },
		Apply: do,
	}
}

func (s *saving) copyHosts(ctx context.Context) (err error) {
	var running []string
	for _, h := range s.hosts {
		if h.Running {
			running = append(running, h.Name)
		}
	}
	// Whatever happens, nobody's cluster stays frozen.
	after := context.WithoutCancel(ctx)
	defer func() {
		err = errors.Join(err, s.docker.Thaw(after, running...))
		if err != nil {
			err = errors.Join(err, s.sweep(after))
		}
	}()
	if err := s.docker.Freeze(ctx, running...); err != nil {
		return err
	}
	return each(len(s.hosts), func(i int) error { return s.copyHost(ctx, s.hosts[i]) })
}

func (s *saving) copyHost(ctx context.Context, h docker.KeptMachine) error {
	for _, volume := range s.ownVolumes(h.Machine) {
		kept := copyOf(volume, s.name)
		if err := s.docker.MakeVolume(ctx, s.Name, kept, map[string]string{snapshotLabel: s.name}); err != nil {
			return err
		}
		if err := s.docker.CopyVolume(ctx, s.Name, h.ImageID, volume, kept); err != nil {
			return err
		}
	}
	return s.docker.Commit(ctx, h.Name, rootOf(h.Name, s.name))
}

// ownSubnet is that of the network there is, whatever the options say.
func (f *fleet) ownSubnet(ctx context.Context) (netip.Prefix, error) {
	networks, err := f.docker.Networks(ctx)
	for _, n := range networks {
		if n.Name == f.Name && n.Fleet == f.Name && len(n.Subnets) > 0 {
			return n.Subnets[0], err
		}
	}
	return f.Subnet, err
}

// note makes the copies a snapshot, in one move.
func (s *saving) note(ctx context.Context) error {
	now, err := s.noted(ctx)
	if err != nil {
		return err
	}
	subnet, err := s.ownSubnet(ctx)
	if err != nil {
		return err
	}
	front, _, err := s.docker.Attached(ctx, s.Name, s.frontName())
	if err != nil {
		return err
	}
	c := contents{
		Format: snapshotFormat, Settings: now, Subnet: subnet, Ports: front.Ports,
		Snapshot: Snapshot{Name: s.name, Made: time.Now().UTC().Truncate(time.Second), Kubernetes: now.version(), Bytes: s.bytes},
	}
	for _, h := range s.hosts {
		c.Machines = append(c.Machines, h.MadeFrom)
		c.Snapshot.Hosts = append(c.Snapshot.Hosts, h.Name)
	}
	word, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return s.docker.Note(ctx, s.Name, snapshotKey+s.name, string(word))
}
