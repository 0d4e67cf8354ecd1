package join

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the kind of host that a token lets in.
type Kind string

const (
	ForWorker       Kind = "worker"
	ForControlPlane Kind = "control-plane"
)

// Scope is what a token is for. The API server adds it, as groups, to every
// request that is made with the token.
type Scope struct {
	Kind     Kind   `json:"kind,omitempty"` // "" lets no host in
	Node     string `json:"node,omitempty"` // the only node it is for; "" is any node that does not exist yet
	Reusable bool   `json:"reusable,omitempty"`
}

const (
	groups            = "system:bootstrappers:kube-bootstrap:"
	workerGroup       = groups + string(ForWorker)
	controlPlaneGroup = groups + string(ForControlPlane)
	reusableGroup     = groups + "reusable"
	nodeGroup         = groups + "node:"
)

// A group must not contain dots, and the name of a node no colons.
var (
	toGroup = strings.NewReplacer(".", ":")
	toNode  = strings.NewReplacer(":", ".")
)

func (s Scope) groups() []string {
	all := []string{groups + string(s.Kind)}
	if s.Node != "" {
		all = append(all, nodeGroup+toGroup.Replace(s.Node))
	}
	if s.Reusable {
		all = append(all, reusableGroup)
	}
	return all
}

func scopeOf(groups []string) (s Scope) {
	for _, group := range groups {
		switch node, isNode := strings.CutPrefix(group, nodeGroup); {
		case group == workerGroup:
			s.Kind = ForWorker
		case group == controlPlaneGroup:
			s.Kind = ForControlPlane
		case group == reusableGroup:
			s.Reusable = true
		case isNode:
			s.Node = toNode.Replace(node)
		}
	}
	return s
}

// refuses tells why a host of that name must not join as a worker, if so; known
// is whether the cluster has a node of that name. Such a node is most likely
// another host, whose name only a token for that node gives away.
func (s Scope) refuses(host string, known bool) error {
	switch {
	case s.Kind != ForWorker:
		return errors.New("the token is not for workers")
	case s.Node != "" && s.Node != host:
		return fmt.Errorf("the token is for node %s, and not for %s", s.Node, host)
	case s.Node == "" && known:
		return fmt.Errorf("the cluster has a node %s already, and the token is not for that node", host)
	}
	return nil
}
