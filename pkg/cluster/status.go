package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// HostStatus tells how a host of a fleet is.
type HostStatus struct {
	Name   string          `json:"name"`
	Role   Role            `json:"role"`
	Addr   netip.Addr      `json:"address"`
	State  string          `json:"state"` // of the container: "running", "exited"
	Image  string          `json:"image"`
	Report json.RawMessage `json:"report,omitempty"` // of `kube-bootstrap status -o json` on it
	Error  string          `json:"error,omitempty"`  // why there is no report
}

// Status returns the hosts of a cluster and, for each running kube-bootstrap
// host, its own report. Names in only restrict the result to these hosts.
func Status(ctx context.Context, options Options, only ...string) ([]HostStatus, error) {
	f, err := open(options, nil)
	if err != nil {
		return nil, err
	}
	defer f.docker.Close()
	found, err := f.found(ctx)
	if err != nil {
		return nil, f.noAnswer(err)
	}
	if len(found) == 0 {
		return nil, f.noHosts(ctx)
	}
	for _, name := range only {
		f.adopt(found)
		m, err := f.pick(name)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(is docker.FoundMachine) bool { return is.Name != m.name })
	}
	all := make([]HostStatus, len(found))
	var wg sync.WaitGroup
	for i, m := range found {
		wg.Go(func() { all[i] = f.hostStatus(ctx, m) })
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b HostStatus) int { return a.Addr.Compare(b.Addr) })
	return all, nil
}

func (f *fleet) hostStatus(ctx context.Context, m docker.FoundMachine) HostStatus {
	status := HostStatus{Name: m.Name, Role: specOf(m).Role, Addr: m.Addr, State: m.State, Image: m.Image}
	if m.State != "running" || status.Role == Bare {
		return status
	}
	var out bytes.Buffer
	// It exits with an error when something is amiss, and says so in its report.
	err := driver.OpenDocker(f.docker, m.Name).Exec(ctx, driver.Exec{Args: []string{binaryPath, "status", "-o", "json"}, Stdout: &out})
	if json.Valid(out.Bytes()) {
		status.Report = out.Bytes()
	} else if err != nil {
		status.Error = err.Error()
	}
	return status
}

const adminKubeconfig = "/etc/kubernetes/admin.conf"

// Kubeconfig returns the admin kubeconfig of a cluster for use on this machine.
// Its server is any control plane that is ready.
func Kubeconfig(ctx context.Context, options Options) ([]byte, error) {
	f, err := open(options, nil)
	if err != nil {
		return nil, err
	}
	defer f.docker.Close()
	return f.kubeconfig(ctx, "")
}

// kubeconfig reads the admin kubeconfig from the first running control plane
// other than but. Its server address reaches any control plane.
func (f *fleet) kubeconfig(ctx context.Context, but string) ([]byte, error) {
	master, err := f.firstMaster(ctx, but)
	if err != nil {
		return nil, err
	}
	file, err := driver.OpenDocker(f.docker, master.Name).Get(ctx, adminKubeconfig)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	server, err := f.reach(ctx)
	if err != nil {
		return nil, err
	}
	return server.kubeconfig(data)
}

func (f *fleet) firstMaster(ctx context.Context, but string) (docker.FoundMachine, error) {
	found, err := f.found(ctx)
	if err != nil {
		return docker.FoundMachine{}, f.noAnswer(err)
	}
	if len(found) == 0 {
		return docker.FoundMachine{}, f.noHosts(ctx)
	}
	slices.SortFunc(found, func(a, b docker.FoundMachine) int { return a.Addr.Compare(b.Addr) })
	for _, m := range found {
		if specOf(m).Role == Master && m.State == "running" && m.Name != but {
			return m, nil
		}
	}
	return docker.FoundMachine{}, &step.Problem{Name: "cluster-off", Text: "no control plane of cluster " + f.Name + " runs", Remedy: "run `kube-bootstrap cluster up --name " + f.Name + "`"}
}

func (s server) kubeconfig(data []byte) ([]byte, error) {
	kubeconfig, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", adminKubeconfig, err)
	}
	for _, c := range kubeconfig.Clusters {
		c.Server, c.TLSServerName = s.url, certName
	}
	return clientcmd.Write(*kubeconfig)
}
