package etcd

import (
	"context"

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
	if ip, err = forgettable(m.Name, name, all, listed); err != nil || ip == "" {
		return "", err
	}
	if err := expel(ctx, client, name, ip); err != nil {
		return "", cannotLeave(err)
	}
	return ip, nil
}

// forgettable returns the address of a host from the members or the list. own
// is the name of this host. A member that has not started yet has no name.
func forgettable(own, name string, all []MemberStatus, listed []Entry) (ip string, err error) {
	if name == own {
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
