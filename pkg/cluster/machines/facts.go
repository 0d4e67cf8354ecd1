package machines

import (
	"context"
	_ "embed" // facts.sh
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
)

//go:embed facts.sh
var factsScript string

// Facts are what was found on a machine.
type Facts struct {
	Err error // why the machine gave no answer; all else is then not set

	Arch           string // as Go names it
	Kernel         string
	HostName       string
	MachineID      string
	Addr           netip.Addr    // of the node
	Clock          time.Duration // ahead of this machine
	Docker         bool
	PackageManager string // "": none that kube-bootstrap knows
	Free           int64  // bytes in /var/lib
	Role           string
	Complete       bool   // the last run of master or worker there has succeeded
	CAHash         string // of the cluster; "" on a machine that is part of none
	Settings       config.Config
	Digests        map[string]string // of the files below programDir
}

// installed reports whether the machine is part of a cluster, complete or not.
func (f Facts) installed() bool {
	return f.Role == config.RoleControlPlane || f.Role == config.RoleWorker
}

// off reports whether the machine does not answer at all.
func (f Facts) off() bool {
	_, off := errors.AsType[*ssh.Unreachable](f.Err)
	return off
}

func (f Facts) state() string {
	switch {
	case f.Err != nil:
		return stateOff
	case !f.installed():
		return topology.StateNew
	}
	return topology.StateRunning
}

// nodeName returns the name of the machine's node.
func (f Facts) nodeName() string {
	if f.Settings.HostName != "" {
		return f.Settings.HostName
	}
	return f.HostName
}

// Facts asks all machines concurrently. They are asked once.
func (p *Provider) Facts(ctx context.Context) (map[string]Facts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.facts != nil {
		return p.facts, nil
	}
	facts := p.each(func(name string) Facts { return p.ask(ctx, name) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p.facts = facts
	return facts, nil
}

// each calls do for all machines concurrently.
func (p *Provider) each(do func(name string) Facts) map[string]Facts {
	var mu sync.Mutex
	var all sync.WaitGroup
	facts := map[string]Facts{}
	for _, m := range p.choice.Machines {
		all.Go(func() {
			f := do(m.Spec.Name)
			mu.Lock()
			defer mu.Unlock()
			facts[m.Spec.Name] = f
		})
	}
	all.Wait()
	return facts
}

// askAgain asks one machine after this run has changed it.
func (p *Provider) askAgain(ctx context.Context, name string) Facts {
	f := p.ask(ctx, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = maps.Clone(p.facts) // others read the former ones
	p.facts[name] = f
	return f
}

func (p *Provider) ask(ctx context.Context, name string) Facts {
	out, err := access.Output(ctx, p.Node(name), access.Script(factsScript, programDir)...)
	if err != nil {
		return Facts{Err: err}
	}
	return parseFacts(name, out, time.Now())
}

// factsEnd is the end of complete facts.
const factsEnd = "\nend\n"

// goArch are the architectures of uname as Go names them.
var goArch = map[string]string{
	"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "armv6l": "arm", "ppc64le": "ppc64le", "s390x": "s390x",
}

func parseFacts(name, out string, now time.Time) (f Facts) {
	words := map[string]string{}
	f.Digests = map[string]string{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		words[key] = value
		if path, ok := strings.CutPrefix(key, "digest:"); ok {
			f.Digests[path] = value
		}
	}
	if !strings.HasSuffix(out, factsEnd) {
		return Facts{Err: fmt.Errorf("machine %s: its answer is not complete: %q", name, out)}
	}
	f.Arch, f.Kernel, f.HostName, f.MachineID = words["arch"], words["kernel"], words["hostname"], words["id"]
	if known := goArch[f.Arch]; known != "" {
		f.Arch = known
	}
	seconds, _ := strconv.ParseInt(words["clock"], 10, 64)
	f.Clock = time.Unix(seconds, 0).Sub(now).Round(time.Second)
	f.Docker, f.Role, f.Complete = words["docker"] != "", words["role"], words["complete"] != ""
	f.PackageManager = words["packages"]
	kib, _ := strconv.ParseInt(words["free"], 10, 64)
	f.Free = kib << 10
	f.Err = f.decode(words)
	f.Addr = f.address(words)
	return f
}

// decode reads the files of a machine that is part of a cluster.
func (f *Facts) decode(words map[string]string) error {
	ca, err := base64.StdEncoding.DecodeString(words["ca"])
	if err != nil {
		return err
	}
	if certificates, err := pki.ParseCertificates(ca); err == nil && len(certificates) > 0 {
		f.CAHash = pki.Hash(certificates[0])
	}
	text, err := base64.StdEncoding.DecodeString(words["settings"])
	if err == nil && len(text) > 0 {
		f.Settings, err = file.Saved(config.SavedPath, text)
	}
	return err
}

// address is the recorded address of a node, or else the address of the machine to which the
// connection leads.
func (f *Facts) address(words map[string]string) netip.Addr {
	if f.installed() && f.Settings.IPAddress.IsValid() {
		return f.Settings.IPAddress
	}
	all := strings.Fields(words["addresses"])
	if connection := strings.Fields(words["connection"]); len(connection) == 4 && slices.Contains(all, connection[2]) {
		addr, _ := netip.ParseAddr(connection[2])
		return addr
	}
	return netip.Addr{}
}
