package step

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ID identifies a step in its plan, and in the events of a run: "start-etcd". Unlike Step.Name it
// never changes.
type ID string

var notInID = regexp.MustCompile(`[^a-z0-9.]+`)

// IDOf returns the ID of a step about something that only the run knows, such as a node:
// "boot-worker-1".
func IDOf(words ...string) ID {
	return ID(strings.Trim(notInID.ReplaceAllString(strings.ToLower(strings.Join(words, "-")), "-"), "-"))
}

// Graph is the order in which the steps of a plan are applied and undone:
//
//	stage 1       stage 2           c needs b. All of a stage need all of the stage before.
//	a ───────┬──▶ b ──▶ c
//	d ───────┴──▶ e
//
// The Undo runs against the arrows: that of d begins after those of b, c and e, and of all that
// needs them, unless d.UndoneAfter names others. The first stage is undone last. An excluded
// step stays in the graph and does nothing, so what waits for it waits for what it waits for.
type Graph struct {
	stages [][]*node
	byID   map[ID]*node
	shown  int // number of stages with a step that is not excluded
}

type node struct {
	Step
	stage       int // from 0, of those with a step that is not excluded
	needs       []*node
	undoneAfter []*node
}

// NewGraph returns the graph of a plan. An ID that the plan does not have or has twice, and steps
// that would wait for one another, are errors.
func NewGraph(plan Plan) (*Graph, error) {
	g := &Graph{byID: map[ID]*node{}}
	var errs []error
	for _, stage := range plan {
		errs = append(errs, g.add(stage))
	}
	if err := errors.Join(append(errs, g.connect())...); err != nil {
		return nil, err
	}
	g.orderUndo()
	return g, errors.Join(
		g.circle("these steps need one another", needed),
		g.circle("the Undo of these steps would wait for one another", undone))
}

// add adds a stage. It ignores a zero Step, which takes the place of a step that does not exist.
func (g *Graph) add(steps []Step) error {
	var stage []*node
	var errs []error
	for _, s := range steps {
		n := &node{Step: s, stage: g.shown}
		switch {
		case s.ID == "" && s.Name == "":
			continue
		case s.ID == "":
			errs = append(errs, fmt.Errorf("the step %q has no ID", s.Name))
		case g.byID[s.ID] != nil:
			errs = append(errs, fmt.Errorf("two steps have the ID %s", s.ID))
		}
		g.byID[s.ID], stage = n, append(stage, n)
	}
	if len(stage) > 0 {
		g.stages = append(g.stages, stage)
	}
	if slices.ContainsFunc(stage, (*node).wanted) {
		g.shown++
	}
	return errors.Join(errs...)
}

// connect resolves the IDs in Needs and UndoneAfter of each step.
func (g *Graph) connect() error {
	var before []*node
	var errs []error
	for _, stage := range g.stages {
		for _, n := range stage {
			named, err := g.named(n, n.Needs)
			n.needs = slices.Concat(before, named)
			after, undoErr := g.named(n, n.UndoneAfter)
			n.undoneAfter = after
			errs = append(errs, err, undoErr)
		}
		before = stage
	}
	return errors.Join(errs...)
}

func (g *Graph) named(by *node, ids []ID) (found []*node, err error) {
	for _, id := range ids {
		n, ok := g.byID[id]
		if !ok {
			return nil, fmt.Errorf("the step %s names the step %s, which the plan does not have", by.ID, id)
		}
		found = append(found, n)
	}
	return found, nil
}

// orderUndo completes the order of Undo: a step without UndoneAfter waits for all that need it,
// and the first stage for all other stages.
func (g *Graph) orderUndo() {
	neededBy := map[*node][]*node{}
	for _, n := range g.nodes() {
		for _, other := range n.needs {
			neededBy[other] = append(neededBy[other], n)
		}
	}
	for _, n := range g.nodes() {
		if n.UndoneAfter == nil {
			n.undoneAfter = reachable(n, func(n *node) []*node { return neededBy[n] })
		}
	}
	if len(g.stages) > 0 {
		for _, n := range g.stages[0] {
			n.undoneAfter = append(n.undoneAfter, slices.Concat(g.stages[1:]...)...)
		}
	}
}

// reachable returns the nodes that next leads to from a node, in one or more steps.
func reachable(from *node, next func(*node) []*node) (found []*node) {
	seen := map[*node]bool{}
	for queue := next(from); len(queue) > 0; queue = queue[1:] {
		if n := queue[0]; !seen[n] {
			seen[n], found = true, append(found, n)
			queue = append(slices.Clip(queue), next(n)...)
		}
	}
	return found
}

// circle returns an error if nodes wait for one another, or for such nodes.
func (g *Graph) circle(text string, before func(*node) []*node) error {
	free, waiting := map[*node]bool{}, g.nodes()
	for progress := true; progress; {
		left := len(waiting)
		waiting = slices.DeleteFunc(waiting, func(n *node) bool {
			free[n] = !slices.ContainsFunc(before(n), func(o *node) bool { return !free[o] })
			return free[n]
		})
		progress = len(waiting) < left
	}
	if len(waiting) == 0 {
		return nil
	}
	var ids []string
	for _, n := range waiting {
		ids = append(ids, string(n.ID))
	}
	return fmt.Errorf("%s: %s", text, strings.Join(ids, ", "))
}

func needed(n *node) []*node { return n.needs }
func undone(n *node) []*node { return n.undoneAfter }

func (n *node) wanted() bool { return !n.excluded }

// nodes returns the steps, also the excluded ones, in the order of the plan.
func (g *Graph) nodes() []*node { return slices.Concat(g.stages...) }

// wantedNodes returns the steps that are not excluded, in the order of the plan.
func (g *Graph) wantedNodes() []*node {
	return slices.DeleteFunc(g.nodes(), func(n *node) bool { return n.excluded })
}

// AppliedBefore reports whether the Apply of later always begins after that of first.
func (g *Graph) AppliedBefore(first, later ID) bool { return g.leads(later, first, needed) }

// UndoneBefore reports whether the Undo of later always begins after that of first.
func (g *Graph) UndoneBefore(first, later ID) bool { return g.leads(later, first, undone) }

func (g *Graph) leads(from, to ID, next func(*node) []*node) bool {
	n := g.byID[from]
	return n != nil && slices.ContainsFunc(reachable(n, next), func(o *node) bool { return o.ID == to })
}

// walk calls do for all nodes, for each once do has returned for those of them that before lists.
// It returns the result for each.
func walk(nodes []*node, before func(*node) []*node, do func(int, *node) error) []error {
	errs, ended := make([]error, len(nodes)), map[*node]chan struct{}{}
	for _, n := range nodes {
		ended[n] = make(chan struct{})
	}
	var running sync.WaitGroup
	for i, n := range nodes {
		running.Go(func() {
			defer close(ended[n])
			for _, other := range before(n) {
				if end, walked := ended[other]; walked {
					<-end
				}
			}
			errs[i] = do(i, n)
		})
	}
	running.Wait()
	return errs
}

// each calls do for all nodes at the same time.
func each(nodes []*node, do func(int, *node) error) []error {
	return walk(nodes, func(*node) []*node { return nil }, do)
}
