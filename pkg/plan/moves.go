package plan

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Moves returns the actions by which nodes join, leave, stop and start in a
// cluster, with drain as the options for draining a node.
func Moves(drain node.Drain) cluster.Moves {
	of := func(api kube.Connect, name string) node.Node { return node.Node{API: api, Name: name} }
	return cluster.Moves{
		Drain:    func(api kube.Connect, name string) step.Step { return of(api, name).Drain(drain) },
		Forget:   func(api kube.Connect, name string) step.Step { return of(api, name).Forget() },
		Uncordon: func(api kube.Connect, name string) step.Step { return of(api, name).Uncordon() },
	}
}
