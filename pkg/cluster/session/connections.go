package session

import (
	"errors"
	"sync"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/provider"
)

// connections are the nodes that a session has connected to, by their host names.
type connections struct {
	mu   sync.Mutex
	open map[string]access.Connection
}

func (c *connections) node(p provider.Provider, name string) access.Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[name] == nil {
		c.open[name] = p.Node(name)
	}
	return c.open[name]
}

func (c *connections) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for name, node := range c.open {
		errs = append(errs, node.Close())
		delete(c.open, name)
	}
	return errors.Join(errs...)
}
