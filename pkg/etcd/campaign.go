package etcd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	campaignPause = 10 * time.Millisecond
	clusterHeader = "X-Etcd-Cluster-ID"
)

// campaign has a single member of etcd start its election at once, until ctx ends. Without it,
// the member waits up to a second for a leader that cannot exist.
//
// It sends the message that a leader sends to its successor when it hands over. The peer port
// accepts it from every holder of a member's certificate. A leader ignores it. Errors are
// ignored, because etcd also starts the election by itself.
func (s Server) campaign(ctx context.Context) {
	trust, err := host.ClientTLS(s.Files, s.PeerCA, s.PeerCert, s.PeerKey)
	if err != nil {
		return
	}
	transport := &http.Transport{TLSClientConfig: trust}
	defer transport.CloseIdleConnections()
	peer := peerPort{url: peerURL(s.IP), version: s.Version, client: http.Client{Transport: transport}}
	for ctx.Err() == nil {
		cluster, members, err := peer.members(ctx)
		if err == nil && len(members) != 1 {
			return
		}
		if err == nil {
			_ = peer.send(ctx, cluster, &raftpb.Message{Type: raftpb.MsgTimeoutNow.Enum(), To: proto.Uint64(members[0].ID)})
		}
		_ = step.Pause(ctx, campaignPause)
	}
}

// peerPort is the port of an etcd for other members.
type peerPort struct {
	url, version string // version is what the sender of messages runs
	client       http.Client
}

// peerMember is a member as the peer port describes it.
type peerMember struct {
	ID uint64 `json:"id"`
}

// members returns the ID of the cluster and its members.
func (p *peerPort) members(ctx context.Context) (cluster string, members []peerMember, err error) {
	header, data, err := p.do(ctx, http.MethodGet, "/members", "", nil)
	if err != nil {
		return "", nil, err
	}
	err = json.Unmarshal(data, &members)
	return header.Get(clusterHeader), members, err
}

func (p *peerPort) send(ctx context.Context, cluster string, m *raftpb.Message) error {
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	_, _, err = p.do(ctx, http.MethodPost, "/raft", cluster, data)
	return err
}

func (p *peerPort) do(ctx context.Context, method, path, cluster string, body []byte) (http.Header, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set(clusterHeader, cluster)
	request.Header.Set("X-Server-Version", p.version)
	request.Header.Set("X-Min-Cluster-Version", p.version)
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	return answer.Header, data, err
}
