package etcd

import (
	"context"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Forget removes a dead host from the list of control planes and from etcd. A
// host that runs must leave by itself. It returns the host's address, or ""
// if the host is in neither.
func (m Member) Forget(ctx context.Context, name string) (ip string, err error) {
	all, err := m.Status(ctx)
	if err != nil {
		return "", err
	}
	if lost := Quorum(all); lost != nil {
		return "", lost
	}
	client, err := m.Client(ctx)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := step.Limited(ctx)
	defer cancel()
	listed, err := Listed(ctx, client)
	if err != nil {
		return "", err
	}
	if ip, err = m.forgettable(name, all, listed); err != nil || ip == "" {
		return "", err
	}
	gone := m
	gone.IP = ip
	if err := remove(ctx, client, func(member *clientv3.Member) bool { return slices.Contains(member.PeerURLs, gone.url(2380)) }); err != nil {
		return "", cannotLeave(err)
	}
	_, err = client.Delete(ctx, Entry{Name: name}.key())
	return ip, err
}

// forgettable returns the address of a host from the members or the list. A
// member that has not started yet has no name.
func (m Member) forgettable(name string, all []MemberStatus, listed []Entry) (ip string, err error) {
	if name == m.Name {
		return "", &step.Problem{Name: "control-plane-alive", Text: name + " is this host", Remedy: "run `kube-bootstrap turndown` to remove it from the cluster"}
	}
	for _, e := range listed {
		if e.Name == name {
			ip = e.IP
		}
	}
	for _, s := range all {
		if s.Name != name && s.IP != ip {
			continue
		}
		if s.Healthy {
			return "", &step.Problem{Name: "control-plane-alive", Text: name + " at " + s.IP + " is alive", Remedy: "run `kube-bootstrap turndown` on it"}
		}
		return s.IP, nil
	}
	return ip, nil
}
