package machines

import (
	"context"
	"errors"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
)

// MachinePlan is what Up would do on one machine.
type MachinePlan struct {
	Name    string   `json:"name"`
	Address string   `json:"address"`
	State   string   `json:"state"`
	Changes []string `json:"changes"`
}

// Plan returns what Up would do on each machine, or the problems of all machines. It changes nothing.
func Plan(ctx context.Context, o Options) ([]MachinePlan, error) {
	s, err := session.Open(o.Selection, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	p, err := Of(s)
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, o, s, p)
	if err != nil {
		return nil, err
	}
	plans, err := planner{r}.plans(ctx)
	if err != nil || !r.exists {
		return plans, err
	}
	nodes, err := apiserver.List(ctx, apiserver.Connect(ctx, s, ""))
	for _, n := range absent(nodes, p.choice.Machines) {
		plans = append(plans, MachinePlan{n.Name, n.Address, stateAbsent, []string{"remove the node, with --prune"}})
	}
	return plans, err
}

// stateAbsent is the state of a node that the file does not have.
const stateAbsent = "not in the file"

// planner finds what a run would do. It changes nothing.
type planner struct{ run *run }

// plans returns the plans of the machines in the order of the file.
func (p planner) plans(ctx context.Context) ([]MachinePlan, error) {
	r := p.run
	all := make([]MachinePlan, len(r.request.machines))
	at := map[string]int{}
	for i, m := range r.request.machines {
		at[m.Spec.Name] = i
	}
	errs := r.concurrently(r.request.machines, func(m Machine) error {
		f, plan := r.facts[m.Spec.Name], &all[at[m.Spec.Name]]
		*plan = MachinePlan{Name: m.Spec.Name, Address: m.Spec.Address, State: f.state(), Changes: []string{}}
		if f.Err != nil {
			plan.Changes = append(plan.Changes, "none, because it does not answer: "+f.Err.Error())
			return nil
		}
		changes, err := p.changes(ctx, m)
		plan.Changes = append(plan.Changes, changes...)
		return err
	})
	return all, errors.Join(errs...)
}

// changes returns the files that a machine gets, and the changes of its role.
func (p planner) changes(ctx context.Context, m Machine) ([]string, error) {
	r := p.run
	files, err := p.missingFiles(ctx, m)
	if err != nil {
		return nil, err
	}
	if !r.facts[m.Spec.Name].Docker {
		files = append(files, "install Docker")
	}
	role := "run " + r.command(m)[0]
	switch {
	case !r.facts[m.Spec.Name].Complete:
		return append(files, role), nil
	case !r.joined(m):
		return append(files, "apply other labels and taints"), nil
	case len(files) > 0: // only the new program can tell what it would change
		return append(files, role+" again"), nil
	}
	steps, err := r.changes(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("machine %s: dry run: %w", m.Spec.Name, err)
	}
	return steps, nil
}

// missingFiles returns a line for each file that a machine does not have.
func (p planner) missingFiles(ctx context.Context, m Machine) (lines []string, err error) {
	r := p.run
	program, err := r.files.program(ctx, r.facts[m.Spec.Name].Arch)
	if err != nil {
		return nil, err
	}
	wanted := []transfer.File{program}
	if r.isFirst(m) && r.options.Bundle != "" {
		wanted = append(wanted, r.bundle())
	}
	for _, u := range wanted {
		differs, err := r.files.differs(ctx, u, m.Spec.Name)
		if err != nil {
			return nil, err
		}
		if differs {
			lines = append(lines, "put "+u.To)
		}
	}
	return lines, nil
}
