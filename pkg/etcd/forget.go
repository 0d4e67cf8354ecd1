package etcd

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Forget takes another host out of the list of control planes and out of etcd,
// one that died for good: a host that lives leaves by itself. It does nothing
// about one that neither knows.
func (m Member) Forget(ctx context.Context, name string) error {
	all, err := m.Status(ctx)
	if err != nil {
		return err
	}
	if err := m.forgettable(name, all); err != nil {
		return err
	}
	client, err := m.Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*lookLimit)
	defer cancel()
	if err := remove(ctx, client, func(member *clientv3.Member) bool { return member.Name == name }); err != nil {
		return cannotLeave(err)
	}
	_, err = client.Delete(ctx, Entry{Name: name}.key())
	return err
}

func (m Member) forgettable(name string, all []MemberStatus) error {
	if name == m.Name {
		return &step.Problem{Name: "control-plane-alive", Text: name + " is this host", Remedy: "run `kube-bootstrap turndown` to take it out"}
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if s.Name == name && s.Healthy {
			return &step.Problem{Name: "control-plane-alive", Text: name + " at " + s.IP + " is alive", Remedy: "run `kube-bootstrap turndown` on it"}
		}
		if s.Name == name {
			return nil
		}
	}
	return &step.Problem{Name: "control-plane-unknown", Text: fmt.Sprintf("etcd has no member %s, only %s", name, strings.Join(names, ", ")),
		Remedy: "name one of them"}
}
