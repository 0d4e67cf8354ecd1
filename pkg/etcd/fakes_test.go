package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// fakeCluster keeps the members of an etcd and which of them run. It answers only while
// most voters run, as etcd does, and a host that is no member does not run.
type fakeCluster struct {
	t  *testing.T
	ca *pki.Authority

	mu      sync.Mutex
	members []*etcdserverpb.Member
	last    uint64                  // the last ID of a member
	up      map[string]*grpc.Server // by address
	asked   []string                // what changes the members or their data
	alarms  []*etcdserverpb.AlarmMember

	revision   int64
	size, live int64 // of the database in use, and what a compaction leaves of it
}

func newCluster(t *testing.T) *fakeCluster {
	ca, err := pki.NewAuthority("etcd", nil, time.Now())
	must.NoError(t, err)
	c := &fakeCluster{t: t, ca: ca, up: map[string]*grpc.Server{}, revision: 7}
	t.Cleanup(func() {
		for _, server := range c.up {
			server.Stop()
		}
	})
	return c
}

// add adds a voter; running: its etcd answers.
func (c *fakeCluster) add(name, ip string, running bool) uint64 {
	c.last++
	c.members = append(c.members, &etcdserverpb.Member{
		ID: c.last, Name: name, PeerURLs: []string{peerURL(ip)}, ClientURLs: []string{clientURL(ip)},
	})
	if running {
		c.start(ip)
	}
	return c.last
}

// start has the etcd at an address listen.
func (c *fakeCluster) start(ip string) {
	pair, err := c.ca.Issue(pki.CertificateRequest{CommonName: "etcd", Hosts: []string{ip}}, time.Now())
	must.NoError(c.t, err)
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	must.NoError(c.t, err)
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, "2379"))
	must.NoError(c.t, err)
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own}})))
	one := &fakeEtcd{fakeCluster: c, ip: ip}
	etcdserverpb.RegisterClusterServer(server, one)
	etcdserverpb.RegisterKVServer(server, one)
	etcdserverpb.RegisterMaintenanceServer(server, one)
	c.up[ip] = server
	go func() { _ = server.Serve(listener) }()
}

func (c *fakeCluster) at(ip string) *etcdserverpb.Member {
	for _, member := range c.members {
		if slices.Contains(member.PeerURLs, peerURL(ip)) {
			return member
		}
	}
	return nil
}

// fakeEtcd is one member of a fakeCluster.
type fakeEtcd struct {
	*fakeCluster
	ip string
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedMaintenanceServer
}

// lock waits for a quorum. The caller must call unlock after an answer without an error.
func (e *fakeEtcd) lock(ctx context.Context) error {
	for {
		e.mu.Lock()
		if own := e.at(e.ip); own == nil || own.IsLearner {
			e.mu.Unlock()
			return rpctypes.ErrGRPCNotSupportedForLearner
		}
		voters, running := 0, 0
		for _, member := range e.members {
			if member.IsLearner {
				continue
			}
			voters++
			if e.up[hostOf(member)] != nil {
				running++
			}
		}
		if running > voters/2 {
			return nil
		}
		e.mu.Unlock()
		if err := step.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

func hostOf(member *etcdserverpb.Member) string {
	return strings.TrimSuffix(strings.TrimPrefix(member.PeerURLs[0], "https://"), ":2380")
}

func (e *fakeEtcd) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{Revision: e.revision}
}

func (e *fakeEtcd) Range(ctx context.Context, _ *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	return &etcdserverpb.RangeResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) MemberList(
	ctx context.Context, _ *etcdserverpb.MemberListRequest,
) (*etcdserverpb.MemberListResponse, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	return &etcdserverpb.MemberListResponse{Header: e.header(), Members: slices.Clone(e.members)}, nil
}

func (e *fakeEtcd) MemberAdd(
	ctx context.Context, r *etcdserverpb.MemberAddRequest,
) (*etcdserverpb.MemberAddResponse, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	e.last++
	e.members = append(e.members, &etcdserverpb.Member{ID: e.last, PeerURLs: r.PeerURLs, IsLearner: r.IsLearner})
	e.asked = append(e.asked, "add "+r.PeerURLs[0])
	return &etcdserverpb.MemberAddResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) MemberRemove(
	ctx context.Context, r *etcdserverpb.MemberRemoveRequest,
) (*etcdserverpb.MemberRemoveResponse, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	e.members = slices.DeleteFunc(e.members, func(m *etcdserverpb.Member) bool { return m.ID == r.ID })
	e.asked = append(e.asked, fmt.Sprintf("remove %d", r.ID))
	return &etcdserverpb.MemberRemoveResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) MemberPromote(
	ctx context.Context, r *etcdserverpb.MemberPromoteRequest,
) (*etcdserverpb.MemberPromoteResponse, error) {
	if err := e.lock(ctx); err != nil {
		return nil, err
	}
	defer e.mu.Unlock()
	for _, member := range e.members {
		if member.ID == r.ID && e.up[hostOf(member)] != nil {
			member.IsLearner = false
			return &etcdserverpb.MemberPromoteResponse{Header: e.header()}, nil
		}
	}
	return nil, rpctypes.ErrGRPCLearnerNotReady
}

func (e *fakeEtcd) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := &etcdserverpb.StatusResponse{Header: e.header(), DbSizeInUse: e.size}
	if own := e.at(e.ip); own != nil {
		answer.Header.MemberId = own.ID
	}
	for _, member := range e.members {
		if e.up[hostOf(member)] != nil && !member.IsLearner {
			answer.Leader = member.ID
			break
		}
	}
	return answer, nil
}

func (e *fakeEtcd) Alarm(_ context.Context, r *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.Action == etcdserverpb.AlarmRequest_DEACTIVATE {
		e.alarms = slices.DeleteFunc(e.alarms,
			func(a *etcdserverpb.AlarmMember) bool { return a.MemberID == r.MemberID && a.Alarm == r.Alarm })
	}
	return &etcdserverpb.AlarmResponse{Header: e.header(), Alarms: slices.Clone(e.alarms)}, nil
}

func (e *fakeEtcd) Compact(context.Context, *etcdserverpb.CompactionRequest) (*etcdserverpb.CompactionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked, e.size = append(e.asked, "compact"), e.live
	return &etcdserverpb.CompactionResponse{Header: e.header()}, nil
}

func (e *fakeEtcd) Defragment(
	context.Context, *etcdserverpb.DefragmentRequest,
) (*etcdserverpb.DefragmentResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, "defragment "+e.ip)
	return &etcdserverpb.DefragmentResponse{Header: e.header()}, nil
}

// server returns the etcd of a host that runs none, and whose etcd has the addresses of peers.
func (c *fakeCluster) server(name, ip string, peers ...string) MemberContainer {
	s := testContainer(c.t)
	s.Member.Name, s.Member.Client.IP, s.Member.Peers, s.Version = name, ip, peers, "3.7.0"
	root, err := c.ca.Issue(pki.CertificateRequest{CommonName: "root", Client: true}, time.Now())
	must.NoError(c.t, err)
	for path, data := range map[string][]byte{
		s.Member.Client.Credentials.CA: c.ca.PEM().Cert, s.Member.Client.Credentials.Cert: root.Cert,
		s.Member.Client.Credentials.Key: root.Key,
	} {
		must.NoError(c.t, s.Member.Data.Files.Write(path, data, 0o600))
	}
	dir, err := os.MkdirTemp("", "kb-etcd-") // the path of a Unix socket must be short
	must.NoError(c.t, err)
	socket := filepath.Join(dir, "d.sock")
	listener, err := net.Listen("unix", socket)
	must.NoError(c.t, err)
	engine := &http.Server{Handler: &fakeEngine{fakeCluster: c, files: s.Member.Data.Files, ip: ip, name: name}}
	go func() { _ = engine.Serve(listener) }()
	c.t.Cleanup(func() { engine.Close(); os.RemoveAll(dir) })
	s.Docker = func() *docker.Engine { return docker.Open(socket) }
	return s
}

// ran has the host have the data of a member.
func ran(t *testing.T, s MemberContainer, id uint64, cluster string) {
	t.Helper()
	must.NoError(t, s.Member.Data.Files.Write(DataDir+"/member/wal/0.wal", []byte(fmt.Sprint(id)), 0o600))
	if cluster != "" {
		must.NoError(t, s.Member.Data.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600))
	}
}
