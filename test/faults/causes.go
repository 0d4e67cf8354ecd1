package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

const (
	cut  = "iptables -I INPUT -i eth0 -j DROP && iptables -I OUTPUT -o eth0 -j DROP"
	mend = "while iptables -D INPUT -i eth0 -j DROP; do :; done 2>/dev/null; " +
		"while iptables -D OUTPUT -o eth0 -j DROP; do :; done 2>/dev/null"

	// The agent would repair what a fault is still being prepared from.
	agentOff = "systemctl stop kube-bootstrap-agent; " + bootstrap + "stop -t 5 etcd && "
	agentOn  = " && { " + bootstrap + "start etcd; systemctl start kube-bootstrap-agent; } || true"
	etcdDir  = state + "etcd"

	// The copy has no blocks where the WAL is empty, so that the next entry needs space.
	fullEtcd = agentOff + "mv " + etcdDir + " /var/tmp/etcd && mkdir -m 700 " + etcdDir +
		" && mount -t tmpfs -o size=260m,mode=700 tmpfs " + etcdDir +
		" && cp -a --sparse=always /var/tmp/etcd/. " + etcdDir + " && { dd if=/dev/zero of=" + etcdDir +
		"/filler bs=1M || true; }" + agentOn
	freeEtcd = agentOff + "rm " + etcdDir + "/filler && rm -rf /var/tmp/etcd && cp -a " + etcdDir +
		" /var/tmp/etcd && umount " + etcdDir +
		" && rmdir " + etcdDir + " && mv /var/tmp/etcd " + etcdDir + agentOn

	garbageWAL = agentOff + "cp -a " + etcdDir + " /var/tmp/etcd && for wal in " + etcdDir +
		"/member/wal/*.wal; do dd if=/dev/urandom of=$wal bs=4k seek=1 count=16 conv=notrunc; done" + agentOn
	cutWAL = agentOff + "cp -a " + etcdDir + " /var/tmp/etcd && for wal in " + etcdDir +
		"/member/wal/*.wal; do dd if=/dev/zero of=$wal bs=4k seek=1 count=1024 conv=notrunc; done" + agentOn
	copyEtcd  = agentOff + "cp -a " + etcdDir + " /var/tmp/etcd" + agentOn
	soundEtcd = agentOff + "rm -rf " + etcdDir + " && mv /var/tmp/etcd " + etcdDir + agentOn

	garbageRecords = "cd " + state +
		` && for f in *.json made-dirs docker0-address containerd-pods images/*; ` +
		`do printf '\000\377{{garbage: [\n"x' >$f; done`

	noRecords = "cd " + state + " && rm -f *.json made-dirs docker0-address containerd-pods images/*"

	// small puts /var/lib on a file system of its own at the next boot.
	small = `cat >/etc/systemd/system/small.service <<'UNIT'
[Unit]
DefaultDependencies=no
Before=containerd.service docker.service docker.socket docker-bootstrap.service
Before=kube-bootstrap-network.service kube-bootstrap-agent.service sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -ec 'mkdir -p /mnt/small; mount -t tmpfs -o size=2g,nr_inodes=100k tmpfs /mnt/small; \
	cp -a /var/lib/. /mnt/small; mount --bind /mnt/small /var/lib'
[Install]
WantedBy=sysinit.target
UNIT
systemctl enable small`
	large = "systemctl disable small; rm -f /etc/systemd/system/small.service"
)

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func reboot(t *testing.T, b *Bed) error { return b.power(t.Context(), "restart", b.worker) }

func bootWithoutNetwork(t *testing.T, b *Bed) error {
	if err := b.power(t.Context(), "restart", b.worker); err != nil {
		return err
	}
	return during(t.Context(), b.worker, 20*time.Second, cut, mend)
}

// alarm has etcd refuse writes, or everything, as it does by itself when its
// data has reached the quota or is corrupt.
func alarm(kind etcdserverpb.AlarmType) func(*testing.T, *Bed) error {
	return func(t *testing.T, b *Bed) error {
		client := clusters.EtcdClient(t, b.master, "apiserver-etcd-client")
		members, err := client.MemberList(t.Context())
		if err != nil {
			return err
		}
		_, err = etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(t.Context(),
			&etcdserverpb.AlarmRequest{
				Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: members.Members[0].ID, Alarm: kind,
			})
		return err
	}
}

// during runs one script, and another some time later.
func during(ctx context.Context, m hosts.Machine, d time.Duration, begin, end string) error {
	_, err := m.Try(ctx, begin)
	pause(ctx, d)
	_, err2 := m.Try(ctx, end)
	return errors.Join(err, err2)
}

// leaveSmallDisk runs the remedy of the full disk if nothing else has.
func leaveSmallDisk(ctx context.Context, b *Bed) error {
	_, err := b.master.Try(ctx, "! mountpoint -q "+etcdDir+" || { "+freeEtcd+"; }")
	return err
}

// otherSubnet reserves another subnet for the worker, and takes the lease and its
// record away, so that flanneld gets that subnet while pods run on the old one.
func otherSubnet(t *testing.T, b *Bed) error {
	was := clusters.Subnets(t, b.worker)
	if _, err := b.worker.Try(t.Context(), "systemctl stop kube-bootstrap-agent; "+bootstrap+"stop flannel && rm "+
		clusters.SubnetFile); err != nil {
		return err
	}
	clusters.ForgetLease(t, b.master, b.worker, was)
	reserve(t, b.master, b.worker, was)
	_, err := b.worker.Try(t.Context(), bootstrap+"start flannel; systemctl start kube-bootstrap-agent || true; "+
		"until [ -s "+clusters.SubnetFile+" ]; do sleep 0.1; done")
	return err
}

// reserve gives the worker a subnet that no host has.
func reserve(t *testing.T, master, worker hosts.Machine, was map[string]string) {
	t.Helper()
	const prefix = "/coreos.com/network/"
	taken, free := []string{was[worker.Name], clusters.Subnets(t, master)[master.Name]}, 251
	for slices.Contains(taken, fmt.Sprintf("10.1.%d.1/24", free)) {
		free++
	}
	old, other := strings.Replace(was[worker.Name], ".1/24", ".0-24", 1), fmt.Sprintf("10.1.%d.0-24", free)
	etcd, user := clusters.EtcdClient(t, master, "apiserver-etcd-client"), "flannel:"+worker.Name
	_, err := etcd.Txn(t.Context()).Then(clientv3.OpDelete(prefix+"reserved/"+old),
		clientv3.OpPut(prefix+"reserved/"+other, worker.Name)).Commit()
	_, err2 := etcd.RoleGrantPermission(t.Context(), user, prefix+"subnets/"+other, "",
		clientv3.PermissionType(clientv3.PermReadWrite))
	must.NoError(t, errors.Join(err, err2))
}

func killedFiveTimes(t *testing.T, b *Bed) error {
	for range 5 {
		if err := b.power(t.Context(), "kill", b.master); err != nil {
			return err
		}
		if err := b.power(t.Context(), "start", b.master); err != nil {
			return err
		}
		pause(t.Context(), 15*time.Second)
	}
	return nil
}

func partition(t *testing.T, b *Bed) error {
	return during(t.Context(), b.worker, 100*time.Second, cut, mend)
}

func partitionAndKills(t *testing.T, b *Bed) error {
	if _, err := b.worker.Try(t.Context(), cut); err != nil {
		return err
	}
	end := time.Now().Add(200 * time.Second)
	err := killedFiveTimes(t, b)
	pause(t.Context(), time.Until(end))
	_, err2 := b.worker.Try(t.Context(), mend)
	return errors.Join(err, err2)
}

// hinder expects the cluster to work while something is in its way.
func (b *Bed) hinder(ctx context.Context, begin, end string) error {
	_, err := b.worker.Try(ctx, begin)
	if err == nil {
		err = b.await(ctx, 30*time.Second)
	}
	pause(ctx, 30*time.Second)
	_, err2 := b.worker.Try(ctx, end)
	if err != nil {
		err = fmt.Errorf("meanwhile: %w", err)
	}
	return errors.Join(err, err2)
}

func loss(t *testing.T, b *Bed) error {
	const rule = "iptables -%[1]s INPUT -i eth0 -m statistic --mode random --probability 0.2 -j DROP; " +
		"iptables -%[1]s OUTPUT -o eth0 -m statistic --mode random --probability 0.2 -j DROP"
	return b.hinder(t.Context(), fmt.Sprintf(rule, "I"), fmt.Sprintf(rule, "D"))
}

// latency delays what the worker sends, so that every answer is late.
func latency(t *testing.T, b *Bed) error {
	const rule = "iptables -%s OUTPUT -o eth0 -j NFQUEUE --queue-num 0 --queue-bypass"
	return b.hinder(t.Context(), "nohup probe delay 300ms 10m >/dev/null 2>&1 & sleep 0.2; "+fmt.Sprintf(rule, "I"),
		fmt.Sprintf(rule, "D")+"; pkill -f '^probe delay'; true")
}

// noMemory leaves the worker less memory than its programs ask for, so that
// the kernel ends some of them.
func noMemory(t *testing.T, b *Bed) error {
	if err := b.Engine(t.Context(), "update", "--memory", "700m", "--memory-swap", "700m", b.worker.Name); err != nil {
		return err
	}
	_, err := b.worker.Try(t.Context(), "end=$(($(date +%s) + 45)); while [ $(date +%s) -lt $end ]; "+
		"do timeout 10 sh -c 'head -c 2G /dev/zero | tail' || sleep 1; done")
	return errors.Join(err, b.Engine(t.Context(), "update", "--memory", "64g", "--memory-swap", "64g", b.worker.Name))
}

// onSmallDisk boots the worker with a small /var/lib and runs two scripts: fill
// fills it and expects that status names the problem, free frees the space.
func onSmallDisk(fill, free string) func(*testing.T, *Bed) error {
	return func(t *testing.T, b *Bed) error {
		if _, err := b.worker.Try(t.Context(), small); err != nil {
			return err
		}
		if err := b.power(t.Context(), "restart", b.worker); err != nil {
			return err
		}
		if err := b.await(t.Context(), time.Minute); err != nil {
			return fmt.Errorf("on a small disk, before it is full: %w", err)
		}
		return during(t.Context(), b.worker, 45*time.Second, fill, free)
	}
}

// onLargeDisk boots the worker with its own disk.
func onLargeDisk(ctx context.Context, b *Bed) error {
	if _, err := b.worker.Try(ctx, large); err != nil {
		return err
	}
	if err := b.power(ctx, "restart", b.worker); err != nil {
		return err
	}
	return b.await(ctx, time.Minute)
}

// leave takes a host back, which must leave its Docker running and nothing of
// the cluster.
func leave(ctx context.Context, m hosts.Machine) error {
	const left = `systemctl unmask docker-bootstrap 2>/dev/null; docker version >/dev/null &&
{ docker ps -aq --filter label=kube-bootstrap.dev/owner; iptables-save | grep -E 'KUBE-|kube-bootstrap|FLANNEL' |
	head -3
ls -d /var/lib/kube-bootstrap /etc/kubernetes /var/lib/kubelet /opt/cni 2>/dev/null; mount | grep /var/lib/kubelet/
ip -o link show flannel.1 2>/dev/null; ctr -n k8s.io containers ls -q
journalctl -q -u containerd --since -3min | grep level=fatal; } || true`
	if out, err := m.Try(ctx, "timeout 120 kube-bootstrap turndown --yes 2>&1"); err != nil {
		return fmt.Errorf("turndown: %w\n%s", err, last(out, 8))
	}
	out, err := m.Try(ctx, left)
	if err == nil && out != "" {
		err = fmt.Errorf("turndown left:\n%s", out)
	}
	return err
}

// leaveAndJoin turns the worker down and joins it again. turndown removes the
// images of pods, and the probe's image cannot be pulled. The cluster deletes the
// probe's pod if it has no node for 40 s.
func leaveAndJoin(t *testing.T, b *Bed) error {
	err := leave(t.Context(), b.worker)
	line, err2 := b.master.Try(t.Context(), "kube-bootstrap token create --node "+b.worker.Name+
		" | grep 'kube-bootstrap worker'")
	if err2 == nil {
		line, err2 = b.worker.Try(t.Context(), strings.TrimSpace(line)+" --bundle "+hosts.Bundle+" 2>&1")
	}
	if err2 == nil {
		line, err2 = b.worker.Try(t.Context(), "docker save "+hosts.ProbeImage+" | ctr -n k8s.io images import - 2>&1")
	}
	if err2 != nil {
		return errors.Join(err, fmt.Errorf("join again: %w\n%s", err2, last(line, 5)))
	}
	traffic.Apply(t, b.master, fmt.Sprintf(traffic.ProbePod, b.worker.Name, b.worker.Name, hosts.ProbeImage))
	return err
}

// leaveAsMaster takes the control plane back, and then restores the cluster
// from its snapshot.
func leaveAsMaster(t *testing.T, b *Bed) error {
	return errors.Join(leave(t.Context(), b.master), b.remake(t.Context()))
}

// refuseToLeave expects turndown to name what it has not removed, and to finish
// once that is gone.
func refuseToLeave(t *testing.T, b *Bed) error {
	out, err := b.worker.Try(t.Context(), "timeout 120 kube-bootstrap turndown 2>&1")
	if err == nil || !strings.Contains(out, "container stray") || !strings.Contains(out, "[turndown-left]") {
		return fmt.Errorf("turndown does not name the container that is left: %w\n%s", err, last(out, 8))
	}
	if _, err := b.worker.Try(t.Context(), "docker rm -f stray"); err != nil {
		return err
	}
	return leaveAndJoin(t, b)
}
