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
	"errors"
	"fmt"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	linkName   = "docker0"
	daemonJSON = "/etc/docker/daemon.json"
)

// Lease is the lease of this host. Subnet contains docker0's address:
// 10.1.7.1/24.
type Lease struct {
	Network, Subnet netip.Prefix
	MTU             int
}

// Bridge is docker0 and the Docker that owns it.
type Bridge struct {
	Files   host.Files
	Units   host.Units
	Docker  func() (*docker.Engine, error)
	Lease   func() (Lease, error)
	Backend string       // flannel's: vxlan, host-gw, udp, wireguard, ipip
	Hosts   netip.Prefix // network of the hosts, which host-gw needs
}

// Move is the step that makes Docker and docker0 match the lease. Stopping,
// changing and starting Docker is one step, because only the whole can be
// undone. Containers that ran before run again afterwards. Open makes the
// changes that need no restart.
func (b Bridge) Move() step.Step {
	return b.moveBecause(func(ctx context.Context) (step.Diff, error) {
		g, err := b.goal(ctx)
		if err != nil {
			return nil, err
		}
		running, err := b.runningDiff(ctx, g.lease)
		return append(g.diff, running...), err
	})
}

// Follow is Move for the agent: it restarts Docker if its network is in
// another subnet or missing, but not because a user edits daemon.json.
func (b Bridge) Follow() step.Step {
	return b.moveBecause(func(ctx context.Context) (step.Diff, error) {
		lease, err := b.Lease()
		if err != nil {
			return nil, noLease{err}
		}
		return b.runningDiff(ctx, lease)
	})
}

// reasons returns why Docker must be restarted.
type reasons func(context.Context) (step.Diff, error)

func (b Bridge) moveBecause(why reasons) step.Step {
	return step.Step{
		Name: "move docker0 onto the flannel subnet",
		Check: func(ctx context.Context) (step.Diff, error) {
			restart, err := why(ctx)
			if errors.As(err, new(noLease)) {
				return step.Diff{"move docker0 onto the flannel subnet, once it is known (" + err.Error() + ")"}, nil
			}
			if err != nil {
				return nil, err
			}
			records, err := b.recordsDiff()
			return append(records, restart...), err
		},
		Apply: func(ctx context.Context) error { return b.move(ctx, why) },
		Undo:  b.moveBack,
	}
}

// noLease is the error that flanneld has not written a lease yet.
type noLease struct{ error }

// goal is the state that Move establishes, from the lease and the user's
// daemon.json.
type goal struct {
	lease Lease
	data  []byte    // daemon.json; nil: up to date
	diff  step.Diff // of daemon.json
}

func (b Bridge) goal(ctx context.Context) (goal, error) {
	lease, err := b.Lease()
	if err != nil {
		return goal{}, noLease{err}
	}
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil {
		return goal{}, err
	}
	want, err := settingsFor(lease, now, allowsDirectRouting(ctx))
	if err != nil {
		return goal{}, err
	}
	g := goal{lease: lease, diff: differences(now, want)}
	if len(g.diff) > 0 {
		g.data, err = encode(merge(now, want))
	}
	return g, err
}

func linkDiff(link host.Link, lease Lease) step.Diff {
	var diff step.Diff
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

// runningDiff compares the settings of the running Docker with the lease,
// because Docker may not have read the file since its change.
func (b Bridge) runningDiff(ctx context.Context, lease Lease) (step.Diff, error) {
	var diff step.Diff
	if b.isPending() {
		diff = append(diff, fmt.Sprintf("finish the restart of Docker, with %d containers", len(b.pending().Containers)))
	}
	network, err := b.networkDiff(ctx, lease)
	if err != nil {
		return nil, err
	}
	_, ok, err := host.FindLink(linkName)
	if err == nil && !ok {
		network = append(network, "make docker0")
	}
	return append(diff, network...), err
}

// networkDiff compares Docker's own description of its bridge network.
func (b Bridge) networkDiff(ctx context.Context, lease Lease) (step.Diff, error) {
	docker, err := b.Docker()
	if err != nil {
		return nil, err
	}
	if err := docker.Answers(ctx); err != nil {
		return step.DiffOf(err, "start Docker")
	}
	net, ok, err := docker.Network(ctx, "bridge")
	if err != nil {
		return nil, err
	}
	if !ok || len(net.IPAM.Config) == 0 {
		return step.Diff{"restart Docker: it has no bridge network"}, nil
	}
	ipam := net.IPAM.Config[0]
	agrees := ipam.Subnet == lease.Subnet.Masked() && ipam.Gateway == lease.Subnet.Addr() && ipam.IPRange == lowerHalf(lease.Subnet) &&
		net.Options["com.docker.network.driver.mtu"] == fmt.Sprint(lease.MTU) &&
		net.Options["com.docker.network.bridge.enable_ip_masquerade"] == "false"
	if !agrees {
		return step.Diff{fmt.Sprintf("restart Docker: its bridge network is %s", ipam.Subnet)}, nil
	}
	return nil, nil
}

func (b Bridge) move(ctx context.Context, why reasons) error {
	if err := b.repairRecords(); err != nil {
		return err
	}
	restart, err := why(ctx)
	if err != nil || len(restart) == 0 {
		return err
	}
	g, err := b.goal(ctx)
	if err != nil {
		return err
	}
	if err := b.moveWhileStopped(ctx, g); err != nil {
		return err
	}
	return b.setLink(g.lease)
}

func (b Bridge) repairRecords() error {
	differ, err := b.recordsDiff()
	if err != nil || len(differ) == 0 {
		return err
	}
	_, err = b.recoverOriginal()
	return errors.Join(err, b.noteAddress())
}

func (b Bridge) moveWhileStopped(ctx context.Context, g goal) error {
	if err := b.noteAddress(); err != nil {
		return err
	}
	err := b.whileStopped(ctx, pending{}, g.data, func() error {
		if err := b.writeSettings(g.data); err != nil {
			return err
		}
		return b.setLink(g.lease)
	})
	if errors.As(err, new(startError)) {
		// Docker refused the settings: restore the user's settings.
		return errors.Join(err, b.moveBack(context.WithoutCancel(ctx)))
	}
	return err
}

// writeSettings writes daemon.json; nil leaves it as it is.
func (b Bridge) writeSettings(data []byte) error {
	if data == nil {
		return nil
	}
	return b.Files.Replace(daemonJSON, data, 0o644)
}

// setLink sets the address of docker0. It does not delete docker0, because
// pods may be attached to it. It does not create docker0 either, because
// Docker assigns a stable MAC address.
func (b Bridge) setLink(lease Lease) error {
	link, ok, err := host.FindLink(linkName)
	if err != nil || !ok || len(linkDiff(link, lease)) == 0 {
		return err
	}
	return host.SetBridge(linkName, lease.Subnet, lease.MTU)
}
