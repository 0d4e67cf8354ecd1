package plan

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Moves says how the nodes of a fleet come and go in their cluster. Each wait
// ends after limit.
func Moves(limit time.Duration) cluster.Moves {
	of := func(api kube.Connect, name string) node.Node { return node.Node{API: api, Name: name} }
	return cluster.Moves{
		Cordon:   func(api kube.Connect, name string) step.Step { return of(api, name).Cordon() },
		Drain:    func(api kube.Connect, name string) step.Step { return of(api, name).Drain(limit) },
		Forget:   func(api kube.Connect, name string) step.Step { return of(api, name).Forget() },
		Uncordon: func(api kube.Connect, name string) step.Step { return of(api, name).Uncordon() },
	}
}
