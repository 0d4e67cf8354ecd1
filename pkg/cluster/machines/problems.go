package machines

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// mostSkew is the difference between clocks that certificates and etcd tolerate.
	mostSkew = time.Minute
	// leastFree is the free space that a new machine needs beside the bundle, in bytes.
	leastFree = 3 << 30
)

// request is what a run needs of all machines.
type request struct {
	machines []Machine
	facts    map[string]Facts
	caHash   string                  // of the cluster, as this machine knows it; "": unknown
	program  func(arch string) error // whether there is a program for an architecture
	bundle   int64                   // bytes
	docker   DockerSource
}

// problems returns all problems of all machines. A machine that does not answer is not a problem, unless
// no other machine can tell whether the cluster exists.
func (r request) problems() error {
	var errs []error
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		switch {
		case f.off():
		case f.Err != nil:
			errs = append(errs, f.Err)
		default:
			errs = append(errs, r.machineProblems(m, f)...)
		}
	}
	return errors.Join(append(errs, slices.Concat(r.twice(), r.otherClusters(), r.unknownCluster())...)...)
}

func problem(m Machine, name, text, remedy string) error {
	return &step.Problem{Name: name, Text: "machine " + m.Spec.Name + ": " + text, Remedy: remedy, Firm: true}
}

func (r request) machineProblems(m Machine, f Facts) (errs []error) {
	if f.Kernel != "Linux" {
		return append(errs, problem(m, "system", "it runs "+f.Kernel, "use a machine with Linux"))
	}
	if err := r.program(f.Arch); err != nil {
		errs = append(errs, problem(m, "architecture", err.Error(),
			"run the command on a machine of this architecture"))
	}
	if err := r.docker.problem(m, f); err != nil {
		errs = append(errs, err)
	}
	if f.Clock.Abs() > mostSkew {
		errs = append(errs, problem(m, "clock",
			fmt.Sprintf("its clock differs by %s from that of this machine", f.Clock),
			"set the clocks, such as with NTP"))
	}
	if !f.Addr.IsValid() {
		errs = append(errs, problem(m, "address",
			"its address is unknown: the connection does not end at an address of it",
			"use an address of the machine, and no port that is forwarded to it"))
	}
	if need := r.bundle + leastFree; !f.installed() && f.Free < need {
		errs = append(errs, problem(m, "disk-space",
			fmt.Sprintf("/var/lib has %d MiB, and %d MiB are necessary", f.Free>>20, need>>20), "free space"))
	}
	return append(errs, roleProblems(m, f)...)
}

// roleProblems returns what an existing node cannot change.
func roleProblems(m Machine, f Facts) (errs []error) {
	if !f.installed() {
		return nil
	}
	if f.Role != string(m.Spec.Role) {
		errs = append(errs, problem(m, "role", "it is set up with the role "+f.Role,
			"correct the file, or remove the node first with `kube-bootstrap turndown` there"))
	}
	if f.nodeName() != m.Spec.Name {
		errs = append(errs, problem(m, "node-name", "its node has the name "+f.nodeName()+", which cannot change",
			"write name: "+f.nodeName()+" into the file, or remove the node first with "+
				"`kube-bootstrap turndown` there"))
	}
	return errs
}

// twice returns a problem for each pair of entries with the same machine-id or the same address.
func (r request) twice() (errs []error) {
	seen := map[string]string{}
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		for what, value := range map[string]string{"machine-id": f.MachineID, "address": f.Addr.String()} {
			key := what + " " + value
			if f.Err != nil || value == "" || !f.Addr.IsValid() && what == "address" {
				continue
			}
			if other := seen[key]; other != "" {
				errs = append(errs, problem(m, what, "it has the "+key+", as machine "+other,
					"correct the addresses; copies of one disk need a new /etc/machine-id each "+
						"(`systemd-machine-id-setup`)"))
			}
			seen[key] = m.Spec.Name
		}
	}
	return errs
}

// first returns the control plane that the other nodes join, and whether the cluster exists. If it exists,
// a control plane whose last run has succeeded is preferred. If it does not, the first control plane of
// the file is returned.
func (r request) first() (first Machine, exists bool) {
	for _, complete := range []bool{true, false} {
		for _, m := range r.machines {
			f := r.facts[m.Spec.Name]
			known := r.caHash == "" || f.CAHash == r.caHash
			if m.Spec.Role == topology.ControlPlane && f.installed() && f.Complete == complete && known {
				return m, true
			}
		}
	}
	at := slices.IndexFunc(r.machines, func(m Machine) bool { return m.Spec.Role == topology.ControlPlane })
	return r.machines[at], false
}

// hash returns the hash of the certificate authority of the cluster. It is the hash that this machine has
// recorded, else the hash of the first control plane that has one, else the hash of any machine.
func (r request) hash() string {
	if r.caHash != "" {
		return r.caHash
	}
	found := ""
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		if f.installed() && f.CAHash != "" && m.Spec.Role == topology.ControlPlane {
			return f.CAHash
		}
		if f.installed() && found == "" {
			found = f.CAHash
		}
	}
	return found
}

func (r request) otherClusters() (errs []error) {
	hash := r.hash()
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		if f.installed() && f.CAHash != "" && f.CAHash != hash {
			errs = append(errs, problem(m, "other-cluster",
				"it is part of another cluster, with the authority "+f.CAHash,
				"remove it from that cluster with `kube-bootstrap turndown` there"))
		}
	}
	return errs
}

// unknownCluster returns a problem if this run could create a second cluster, because a control plane that
// does not answer may be part of the first one.
func (r request) unknownCluster() []error {
	first, exists := r.first()
	if exists {
		return nil
	}
	var off []string
	unknown := false // a control plane has another problem, which is reported too
	for _, m := range r.machines {
		f := r.facts[m.Spec.Name]
		switch {
		case m.Spec.Role != topology.ControlPlane:
		case f.off():
			off = append(off, m.Spec.Name)
		case f.Err != nil:
			unknown = true
		}
	}
	hash := r.hash()
	switch {
	case len(off) == 0 && (unknown || hash == "" || r.caHash != "" && !r.anyInstalled()):
		return nil // every control plane answers, and none has a cluster
	case len(off) == 0:
		return []error{&step.Problem{Name: "control-plane-missing", Firm: true,
			Text:   "machines of the file are part of a cluster, and no control plane of the file is",
			Remedy: "write a control plane of that cluster into the file, or turn the machines down"}}
	case hash != "":
		return []error{&step.Problem{Name: "control-plane-off", Firm: true,
			Text:   "the cluster exists, and no control plane of it answers: " + strings.Join(off, ", "),
			Remedy: "switch one on, and run the command again"}}
	case slices.Contains(off, first.Spec.Name):
		return []error{&step.Problem{Name: "control-plane-off", Firm: true,
			Text: "machine " + first.Spec.Name +
				", the first control plane, does not answer, and no other machine knows the cluster",
			Remedy: "switch it on; if it never was part of the cluster, write another control plane first"}}
	}
	return nil
}

func (r request) anyInstalled() bool {
	return slices.ContainsFunc(r.machines, func(m Machine) bool { return r.facts[m.Spec.Name].installed() })
}
