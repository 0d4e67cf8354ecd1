package source

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// checkNodes checks what the nodes mean for one another and for masters and
// workers.
func checkNodes(c config.Config, origins config.Origins) field.ErrorList {
	if len(c.Nodes) == 0 {
		return nil
	}
	var errs field.ErrorList
	for name, value := range map[string]int{"masters": c.Masters, "workers": c.Workers} {
		if origins[name].Source != config.FromDefault {
			errs = append(errs, field.Invalid(field.NewPath(name), value,
				fmt.Sprintf("nodes (%s) says which nodes there are; leave %s (%s) out, or nodes", origins[config.NodesField].Where, name, origins[name].Where)))
		}
	}
	if !slices.ContainsFunc(c.Nodes, func(n config.Node) bool { return n.Role == config.RoleMaster }) {
		errs = append(errs, field.Required(field.NewPath(config.NodesField), "one with role control-plane ("+origins[config.NodesField].Where+")"))
	}
	named := map[string]int{}
	for i, n := range c.Nodes {
		if other, twice := named[n.Name]; twice && n.Name != "" {
			at := field.NewPath(config.NodesField).Index(i).Child("name")
			errs = append(errs, field.Invalid(at, n.Name, fmt.Sprintf("is that of nodes[%d] (%s); choose another", other, origins[at.String()].Where)))
		}
		named[n.Name] = i
	}
	return errs
}
