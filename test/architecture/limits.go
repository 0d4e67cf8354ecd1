package architecture

import (
	"fmt"
	"go/ast"
	"slices"
)

// The user sets how long a wait or a request of a step may take, with
// --timeout-for-services. The step gets the value in its context, see
// step.Limit. Every other duration in pkg must be listed here.
var spans = map[string]string{
	"pkg/step.DefaultLimit": "the limit that nobody set",
	"pkg/step.Half":         "makes the contexts of looks",
	"pkg/step.within":       "makes the contexts of requests",
	"pkg/step.Span":         "rounding of a text",
	"pkg/step.firstPause":   "pause between tries",
	"pkg/step.maxPause":     "pause between tries",

	"pkg/step.minCheckLimit": "the least that a Check has",
	"pkg/step.minTryLimit":   "the least that a try has",

	// A request with step.Limit that has an error message of its own for a
	// timeout.
	"pkg/cluster/testhost.ready": "step.Limit",
	"pkg/docker.removeContainer": "step.Limit",

	// Pauses, and periods of loops that run for ever.
	"pkg/agent.allEvery":            "period",
	"pkg/agent.awaitStart":          "pause between looks",
	"pkg/agent.dropEvery":           "period",
	"pkg/agent.firstAgain":          "pause between tries",
	"pkg/agent.firstPause":          "pause between tries",
	"pkg/agent.legacyEvery":         "period",
	"pkg/agent.lockedFor":           "pause between tries",
	"pkg/host/filesystem.awaitPoll": "pause between looks",
	"pkg/host/filesystem.awaitTick": "pause between looks",
	"pkg/agent.maxAgain":            "pause between tries",
	"pkg/agent.maxPause":            "pause between tries",
	"pkg/agent.settle":              "pause between looks",
	"pkg/agent.startPause":          "pause between looks",
	"pkg/agent.startTime":           "pause before memory is saved",
	"pkg/agent.steady":              "how long a step must hold",
	"pkg/agent.tickEvery":           "period",
	"pkg/flannel.aliveEvery":        "period",
	"pkg/flannel.leasePatience":     "then flanneld is restarted",
	"pkg/flannel.progressPause":     "pause between looks",
	"pkg/balancer.firstLook":        "pause between looks",
	"pkg/balancer.firstRetry":       "pause between tries",
	"pkg/balancer.follow":           "lookEvery",
	"pkg/balancer.lookEvery":        "period",
	"pkg/balancer.probeEvery":       "period",
	"pkg/balancer.maxRetry":         "pause between tries",
	"pkg/balancer.watchPause":       "pause between tries",
	"pkg/step.watchPause":           "pause between looks",
	"pkg/image.firstCompile":        "how long compiling takes, for information",
	"pkg/docker.result":             "pause between looks",
	"pkg/docker.retryPause":         "pause between tries",
	"pkg/plan/upkeep.lockEvery":     "pause between tries",
	"pkg/etcd.eager":                "pauses between tries",
	"pkg/etcd.campaignPause":        "pause between tries",
	"pkg/etcd.reasonPause":          "pause between looks",
	"pkg/etcd.stuckPause":           "pause between looks",
	"pkg/firewall.fillFlushed":      "pause between looks",
	"pkg/step.reportEvery":          "how often progress is told",
	"pkg/flannel.runOnce":           "period of looks",
	"pkg/kube.firstReopen":          "pause between tries",
	"pkg/kube.maxReopen":            "pause between tries",
	"pkg/link.firstPause":           "pause between tries",
	"pkg/link.longestWait":          "the longest pause that a server may ask for",
	"pkg/link.maxPause":             "pause between tries",

	// Limits for a silent connection, or for a server that has alternatives.
	// The request is retried.
	"pkg/balancer.dialLimit":        "a try; the next server is asked",
	"pkg/balancer.dialer":           "keep-alive",
	"pkg/balancer.probeLimit":       "a try; the next server is asked",
	"pkg/balancer.silence":          "a connection that carries nothing",
	"pkg/balancer.look":             "probeLimit",
	"pkg/etcd.Client":               "keep-alive",
	"pkg/bundle/peer.dialLimit":     "a try; the next server is asked",
	"pkg/bundle/peer.stallLimit":    "a transfer that stands still, documented",
	"pkg/fetch.DefaultStall":        "a transfer that stands still, documented",
	"pkg/fetch.Reachable":           "connectLimit and answerLimit",
	"pkg/fetch.connectLimit":        "a firewall that drops packets, documented",
	"pkg/fetch.answerLimit":         "connectLimit, and an error of TLS after it",
	"pkg/controlplane.refuse":       "of a webhook that is not meant to answer",
	"pkg/join.answerLimit":          "how long an API server works at a request, after the limit of a Check",
	"pkg/registry.answerLimit":      "a transfer that stands still, documented",
	"pkg/registry.dialLimit":        "a try of a transfer, documented",
	"pkg/registry.idleLimit":        "a connection that carries nothing",
	"pkg/registry.stallLimit":       "a transfer that stands still, documented",
	"pkg/etcd/gate.quietConnection": "a connection that carries nothing",
	"pkg/etcd/gate.pingAfter":       "keep-alive",
	"pkg/etcd/gate.pingLimit":       "keep-alive",

	// A timeout here is not a failure: a stronger action follows, or none.
	"pkg/agent.minRepairLimit":       "the next duties wait for a repair; it is tried again",
	"pkg/dump.limit":                 "then the file is left out",
	"pkg/dump.grace":                 "then the file is left out",
	"pkg/dump.await":                 "limit",
	"pkg/containerd.proxyPatience":   "then kube-proxy is restarted",
	"pkg/containerd.proxyStarts":     "then kube-proxy is restarted",
	"pkg/containerd.slowProxyStarts": "then kube-proxy is restarted",
	"pkg/containerd.shimPatience":    "then a signal is sent",
	"pkg/docker.interrupt":           "how long an interrupted command may say its last words",
	"pkg/etcd.silent":                "then the other members are asked",
	"pkg/flannel.ownPatience":        "then flanneld is restarted",
	"pkg/host.LockUnless":            "a repair of the agent",
	"pkg/host.holder":                "the write of a few bytes by another process",
	"pkg/maindocker.repairChains":    "then Docker is restarted",
	"pkg/maindocker.setLiveRestore":  "then Docker is restarted with its containers",
	"pkg/plan/upkeep.loadedImages":   "a run of a user waits for a repair; it is tried again",
	"pkg/plan/renewal.Limit":         "a run of a user waits for a repair; it is tried again",
	"pkg/plan/upkeep.restartSpread":  "pause",
	"pkg/plan/upkeep.longOutage":     "length of an outage, which is not waited for",
	"pkg/plan/upkeep.backoffReset":   "time over which outages add up",
	"pkg/host.WaitLock":              "another run of kube-bootstrap",
	"pkg/host.outputDelay":           "then processes of a cancelled program may keep its output",
	"pkg/maindocker.bootSlack":       "added to step.Limit",
	"pkg/imagestore.loadGrace":       "after an interruption",

	"pkg/host/hosttest.cutShort": "the interruption that a test wants",
	"pkg/host/hosttest.settle":   "a test",
	"pkg/host/hosttest.same":     "a test",

	"pkg/docker/dockertest.stopLimit": "a test",

	"pkg/cluster/suite.left": "rounding",
	"pkg/registry.Serve":     "what our own server allows its clients",

	"pkg/localregistry.query":      "askLimit",
	"pkg/localregistry.follow":     "freshLimit",
	"pkg/localregistry.askLimit":   "a node asks the upstream itself afterwards, documented",
	"pkg/localregistry.nodes":      "what our own server allows its clients",
	"pkg/bundle/peer.hosts":        "what our own server allows its clients",
	"pkg/localregistry.noteEvery":  "how often a line is logged",
	"pkg/localregistry.freshLimit": "the registry answers with what it has afterwards, documented",
	"pkg/localregistry.silentFor":  "pause between tries",
	"pkg/localregistry.uploadLife": "lifetime",

	// Lifetimes, and tolerances for clock skew.
	"pkg/cluster.tokenTTL":          "lifetime",
	"pkg/plan/parts.clientLife":     "lifetime",
	"pkg/controlplane.staleAfter":   "the age of a lease",
	"pkg/flannel.clockGrain":        "clocks",
	"pkg/join.ShareTTL":             "lifetime",
	"pkg/join.maxSkew":              "clocks",
	"pkg/node.expired":              "unit of a field",
	"pkg/host/kernel.clockTick":     "unit of a file",
	"pkg/link.retryAfter":           "unit of a header",
	"pkg/plan/renewal.maxTokenLife": "lifetime",
	"pkg/plan/renewal.tokenLife":    "lifetime",
	"pkg/plan/renewal.tokenLifeOf":  "lifetime",
	"pkg/plan/renewal.tokenSlack":   "lifetime",
	"pkg/pki.AuthorityLife":         "lifetime",
	"pkg/pki.LeafLife":              "lifetime",
	"pkg/controlplane.MinLeafLife":  "lifetime",
	"pkg/controlplane.grantLife":    "lifetime",
	"pkg/pki.backdate":              "clocks",
	"pkg/pki.soon":                  "lifetime",
}

// times are the constants that durations consist of.
var times = []string{
	"time.Millisecond", "time.Second", "time.Minute", "time.Hour",
	"context.WithTimeout", "context.WithTimeoutCause", "context.WithDeadline", "context.WithDeadlineCause", "net.DialTimeout",
}

// spansOfTime returns the declarations of a file in pkg that contain a
// duration.
func (s source) spansOfTime() []string {
	if s.isTest() || layer(s.dir) < 0 || packageOf(s.dir) == "cmd/kube-bootstrap" {
		return nil
	}
	var all []string
	for _, d := range s.syntax.Decls {
		for name, node := range declared(d) {
			if hasSpan(node) {
				all = append(all, s.dir+"."+name)
			}
		}
	}
	return all
}

// declared returns the parts of a declaration by name, with a method by its own
// name.
func declared(d ast.Decl) map[string]ast.Node {
	parts := map[string]ast.Node{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		parts[d.Name.Name] = d
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				parts[v.Names[0].Name] = v
			}
		}
	}
	return parts
}

// hasSpan reports whether a node contains a duration. It ignores the arguments
// of Round and Truncate, which are units.
func hasSpan(node ast.Node) (found bool) {
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && rounds(call) {
			return false
		}
		if selector, ok := n.(*ast.SelectorExpr); ok {
			of, ok := selector.X.(*ast.Ident)
			found = found || ok && slices.Contains(times, of.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return found
}

func rounds(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (f.Sel.Name == "Round" || f.Sel.Name == "Truncate")
}

func (s source) limits() []string {
	var all []string
	for _, name := range s.spansOfTime() {
		if spans[name] == "" {
			all = append(all, fmt.Sprintf("%s: %s has a time limit of its own; take step.Limit, or say in test/architecture what else it is", s.name, name))
		}
	}
	return all
}
