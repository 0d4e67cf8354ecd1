package localcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
)

// clusterStatus is what `cluster status -o json` prints.
type clusterStatus struct {
	Name  string        `json:"name"`
	Ready bool          `json:"ready"`
	API   string        `json:"apiServer,omitempty"` // URL that does not depend on which control planes run
	Hosts []clusterHost `json:"hosts"`
	Error string        `json:"error,omitempty"` // why there are no nodes

	Registry *cluster.LocalRegistry `json:"localRegistry,omitempty"`
}

type clusterHost struct {
	remote.HostStatus
	Node *apiserver.Node `json:"node,omitempty"`
}

func showCluster(ctx context.Context, out io.Writer, format output.Format, o cluster.Options, only ...string) error {
	hosts, err := cluster.Status(ctx, o.Options, only...)
	if err != nil {
		return exit.Firm(err)
	}
	s := clusterStatus{Name: o.Name, Ready: len(hosts) > 0, Hosts: []clusterHost{}}
	nodes := map[string]*apiserver.Node{}
	if len(hosts) > 0 {
		found, err := apiserver.Nodes(ctx, o.Options)
		for _, n := range found {
			nodes[n.Name] = &n
		}
		if err != nil {
			s.Error = err.Error()
		} else if s.API, err = apiserver.URL(ctx, o.Options); err != nil {
			s.Error = err.Error()
		}
	}
	if s.Registry, err = cluster.RegistryStatus(ctx, o.Options); err != nil {
		return exit.Firm(err)
	}
	s.Ready = s.Ready && (s.Registry == nil || s.Registry.Running)
	for _, h := range hosts {
		one := clusterHost{h, nodes[h.Name]}
		s.Ready = s.Ready && one.ready()
		s.Hosts = append(s.Hosts, one)
	}
	if err := format.Print(out, "ClusterStatus", s, s.print); err != nil {
		return err
	}
	if !s.Ready {
		return exit.ErrNotUpToDate
	}
	return nil
}

func (s clusterStatus) print(w io.Writer) {
	output.Row(w, "HOST", "ADDRESS", "STATE", "STEPS", "NODE", "VERSION")
	for _, h := range s.Hosts {
		node := cmp.Or(h.Node, &apiserver.Node{})
		output.Row(w, h.Name, h.Addr.String(), h.State, h.steps(), node.Status(), node.Version)
	}
	if s.API != "" {
		fmt.Fprintln(w, "\nAPI server: "+s.API+", which leads to any control plane that is ready")
	}
	switch {
	case s.Registry == nil:
	case s.Registry.Running:
		fmt.Fprintln(w, "local registry: "+s.Registry.Address)
	default:
		fmt.Fprintln(w, "the local registry "+s.Registry.Address+", container "+s.Registry.Container+", does not run")
	}
	if s.Error != "" {
		fmt.Fprintln(w, "no answer about the nodes: "+s.Error)
	}
	if !s.Ready {
		fmt.Fprintln(w, cmp.Or(s.quorum(), s.expiry(), s.repair()))
	}
}

// quorum returns the report of a control plane about a lost etcd quorum.
func (s clusterStatus) quorum() string {
	for _, h := range s.Hosts {
		if text := h.report().Quorum; text != "" {
			return text
		}
	}
	return ""
}

// expiry returns the reports of hosts whose certificates expire soon.
func (s clusterStatus) expiry() string {
	var lines []string
	for _, h := range s.Hosts {
		if text := h.report().CertificateExpiry; text != "" {
			lines = append(lines, h.Name+": "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// repair returns the command that repairs the cluster, or starts a node if only some are off.
func (s clusterStatus) repair() string {
	o := session.Options{Name: s.Name}
	off := slices.DeleteFunc(slices.Clone(s.Hosts), func(h clusterHost) bool { return h.State == "running" })
	if len(off) == 0 || len(off) == len(s.Hosts) {
		return "run `kube-bootstrap cluster up" + nameFlag(o) + "` to repair it"
	}
	return "run `kube-bootstrap node start " + off[0].Name + clusterFlag(o) + "` to switch that node on, or `kube-bootstrap cluster up" + nameFlag(o) + "` to repair all"
}

// report is what the kube-bootstrap on the host says of itself.
func (h clusterHost) report() (s thishost.Status) {
	_ = json.Unmarshal(h.Report, &s) // no report: nothing up to date
	return s
}

func (h clusterHost) ready() bool {
	return h.Node != nil && h.Node.Ready && h.report().UpToDate
}

// steps counts the steps by their state. One without an answer is not known to be missing.
func (h clusterHost) steps() string {
	report := h.report()
	var missing, unknown []string
	for _, one := range report.Steps {
		switch {
		case one.Error != "":
			unknown = append(unknown, one.Step)
		case !one.UpToDate:
			missing = append(missing, one.Step)
		}
	}
	var texts []string
	if len(missing) > 0 {
		texts = append(texts, "missing: "+strings.Join(missing, ", "))
	}
	if len(unknown) > 0 {
		texts = append(texts, "unknown: "+strings.Join(unknown, ", "))
	}
	switch {
	case len(texts) > 0:
		return strings.Join(texts, "; ")
	case report.UpToDate:
		return fmt.Sprintf("%d up to date", len(report.Steps))
	}
	return cmp.Or(progress.FirstLine(h.Error), "none")
}
