// Package maindocker moves the main Docker into flannel's subnet:
// daemon.json, docker0, the firewall between the overlay and docker0, and
// their order at boot.
//
//	       flannel subnet 10.1.7.0/24
//	overlay ──▶ docker0 10.1.7.1 ──┬── plain containers  10.1.7.0/25   (Docker: fixed-cidr)
//	        firewall               └── pods              10.1.7.128/25 (CNI: host-local)
package maindocker

import (
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

const (
	linkName = "docker0"
	// SettingsDir contains daemon.json.
	SettingsDir = "/etc/docker"
	daemonJSON  = SettingsDir + "/daemon.json"
)

// Bridge is docker0, which follows the lease.
type Bridge struct {
	Docker Daemon
	Lease  func() (subnet.Lease, error)
}

// Docker0ID identifies Bridge.Move.
const Docker0ID step.ID = "docker0"

// Move is the step that makes Docker and docker0 match the lease. Stopping,
// changing and starting Docker is one step, because the parts cannot be undone
// separately. Containers that ran before run again afterwards. Open makes the
// changes that need no restart.
func (b Bridge) Move() step.Step {
	return b.moveBecause(func(ctx context.Context, lease subnet.Lease) (step.Diff, error) {
		_, diff, err := goalFor(ctx, b.Docker.Files, lease)
		if err != nil {
			return nil, err
		}
		running, err := b.Docker.runningDiff(ctx, lease)
		return append(diff, running...), err
	})
}

// Follow is Move for the agent: it restarts Docker if its network is in
// another subnet or missing, but not because a user edits daemon.json.
func (b Bridge) Follow() step.Step { return b.moveBecause(b.Docker.runningDiff) }

// reasons returns why Docker must be restarted for a lease.
type reasons func(context.Context, subnet.Lease) (step.Diff, error)

func (b Bridge) moveBecause(why reasons) step.Step {
	return step.Step{
		ID: Docker0ID, Name: "move docker0 onto the flannel subnet",
		Check: func(ctx context.Context) (step.Diff, error) {
			lease, err := b.Lease()
			if err != nil { // flanneld has not written it yet
				return step.Diff{"move docker0 onto the flannel subnet, once it is known (" + err.Error() + ")"}, nil
			}
			restart, err := why(ctx, lease)
			if err != nil {
				return nil, err
			}
			records, err := recordsDiff(b.Docker.Files)
			return append(records, restart...), err
		},
		Apply: func(ctx context.Context) error { return b.move(ctx, why) },
		Undo:  b.Docker.moveBack,
	}
}

// RestoreSettings is the step that puts Move's settings into a daemon.json that another program has
// rewritten or deleted. Docker needs no restart, because it runs with them.
func RestoreSettings(files host.Files, lease func() (subnet.Lease, error)) step.Step {
	goal := func(ctx context.Context) ([]byte, step.Diff, error) {
		if moved, err := moved(files); err != nil || !moved || Interrupted(files) {
			return nil, nil, err
		}
		now, err := lease()
		if err != nil {
			return nil, nil, err
		}
		return goalFor(ctx, files, now)
	}
	return step.Step{
		ID: "docker-settings", Name: "keep Docker's settings",
		Check: func(ctx context.Context) (step.Diff, error) { _, diff, err := goal(ctx); return diff, err },
		Apply: func(ctx context.Context) error {
			data, _, err := goal(ctx)
			if err != nil {
				return err
			}
			return bootSettings(ctx, files, data)
		},
	}
}

// goalFor returns the daemon.json that Move establishes, from the lease and the user's
// daemon.json, and the differences. It returns no data if the file is up to date.
func goalFor(ctx context.Context, files host.Files, lease subnet.Lease) (data []byte, diff step.Diff, err error) {
	now, err := readSettings(files)
	if err != nil {
		return nil, nil, err
	}
	want, err := settingsFor(lease, now, usesNftables(now) && allowsDirectRouting(ctx))
	if err != nil {
		return nil, nil, err
	}
	if diff = differences(now, want); len(diff) > 0 {
		data = encode(merge(now, want))
	}
	return data, diff, nil
}

func linkDiff(link links.Link, lease subnet.Lease) (diff step.Diff) {
	if len(link.Addrs) != 1 || link.Addrs[0] != lease.Subnet {
		diff = append(diff, fmt.Sprintf("set docker0 to %s (now %v)", lease.Subnet, link.Addrs))
	}
	if link.MTU != lease.MTU {
		diff = append(diff, fmt.Sprintf("set the MTU of docker0 to %d (now %d)", lease.MTU, link.MTU))
	}
	if !link.Up {
		diff = append(diff, "set docker0 up")
	}
	return diff
}

func (b Bridge) move(ctx context.Context, why reasons) error {
	if err := repairRecords(b.Docker.Files); err != nil {
		return err
	}
	lease, err := b.Lease()
	if err != nil {
		return err
	}
	restart, err := why(ctx, lease)
	if err != nil || len(restart) == 0 {
		return err
	}
	data, _, err := goalFor(ctx, b.Docker.Files, lease)
	if err != nil {
		return err
	}
	if err := b.Docker.moveTo(ctx, lease, data); err != nil {
		return err
	}
	return setLink(lease)
}

// setLink sets the address of docker0. It does not delete docker0, because
// pods may be attached to it. It does not create docker0 either, because
// Docker assigns a stable MAC address.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/libnetwork/drivers/bridge/setup_device_linux.go#L29-L31
func setLink(lease subnet.Lease) error {
	link, ok, err := links.Find(linkName)
	if err != nil || !ok || len(linkDiff(link, lease)) == 0 {
		return err
	}
	return links.SetBridge(linkName, lease.Subnet, lease.MTU)
}
