package source

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
)

// onlyContainers are the fields of an entry of nodes that a machine cannot have.
var onlyContainers = []string{"count", "hostImage", "dockerVersion", "ports", "mounts"}

// notForMachines are the settings that clusters of machines cannot have.
var notForMachines = []string{
	"dindSubnet", "hostImage", "localRegistry", "localRegistryCache", "dockerHost", "dockerContext", "k8sDir",
}

// checkMachines checks the nodes that are machines, and that a cluster has either machines or containers.
func checkMachines(c config.Config, origins config.Origins) (errs field.ErrorList) {
	if !slices.ContainsFunc(c.Nodes, func(n config.NodeEntry) bool { return n.Address != "" }) {
		return append(errs, sshWithoutAddress(c)...)
	}
	at := map[string]int{}
	for i, n := range c.Nodes {
		entry := field.NewPath(config.NodesField).Index(i)
		if n.Address == "" {
			errs = append(errs, field.Required(entry.Child("address"),
				"a cluster has either machines or containers, and other nodes have an address"))
			continue
		}
		errs = append(errs, machineFields(entry, origins)...)
		key := fmt.Sprintf("%s:%d", n.Address, n.Settings.SSH.Over(c.SSH).Port)
		if other, twice := at[key]; twice {
			errs = append(errs, field.Invalid(entry.Child("address"), n.Address,
				fmt.Sprintf("is that of nodes[%d]; each machine is one node", other)))
		}
		at[key] = i
	}
	for _, name := range notForMachines {
		if origins.Said(name) != "" {
			errs = append(errs, field.Forbidden(field.NewPath(name),
				"is only for nodes that are containers; omit "+origins.Said(name)))
		}
	}
	return errs
}

func machineFields(entry *field.Path, origins config.Origins) (errs field.ErrorList) {
	for _, name := range onlyContainers {
		if from := origins[entry.Child(name).String()]; from.Source != config.FromDefault {
			errs = append(errs, field.Forbidden(entry.Child(name),
				"is only for nodes that are containers ("+from.Where+"); omit it"))
		}
	}
	return errs
}

func sshWithoutAddress(c config.Config) (errs field.ErrorList) {
	for i, n := range c.Nodes {
		if n.Settings.SSH != (connection.SSH{}) {
			errs = append(errs, field.Required(field.NewPath(config.NodesField).Index(i).Child("address"),
				"ssh is only for nodes that are machines; write the address of the machine"))
		}
	}
	return errs
}
