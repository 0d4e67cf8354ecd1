package gate

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Each limit applies to a worker. A worker may request any number of certificates, and all of them
// share the limits.
const (
	mostCalls = 32 // of a worker at a time
	// mostUsers is the number of users of a worker with a connection to etcd. etcd keeps three users
	// of a worker.
	mostUsers = 4
	// mostRequests are the requests of one call. Each request of a watch may need memory in
	// etcd; a client of etcd continues its watches in another call.
	mostRequests = 100
	// flanneld and the agent make a few requests when they start, and then hardly any.
	requestsPerSecond, mostAtOnce = 20, 200
	// A worker makes few changes: one of its lease an hour, and a few when flanneld starts.
	// With more, it waits, so that it cannot fill etcd before the API server compacts it.
	writesPerSecond, mostWrites = 0.5, 60
	smallBuffer                 = 4 << 10 // bytes; gRPC has 32 KiB for each direction of each connection
)

// access is a worker's access to etcd.
type access struct {
	conns            map[string]*grpc.ClientConn // by user; each certificate of the worker has a user
	calls            *semaphore.Weighted
	requests, writes *rate.Limiter
}

// pass passes one call.
func (s *server) pass(_ any, worker grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(worker.Context())
	defer cancel()
	method, _ := grpc.MethodFromServerStream(worker)
	rule, known := rules[method]
	if !known {
		return status.Errorf(codes.PermissionDenied, "a worker may not call %s of etcd", method)
	}
	name := caller(ctx)
	host := s.Host(name)
	if host == "" {
		return status.Errorf(codes.PermissionDenied, "%q is not the user of a worker", name)
	}
	a, conn, err := s.access(host, name)
	if err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	if !a.calls.TryAcquire(1) {
		return status.Error(codes.ResourceExhausted, "too many calls of this worker at a time")
	}
	defer a.calls.Release(1)
	if err := s.await(ctx, rule, a, conn); err != nil {
		return err
	}
	both := &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
	etcd, err := conn.NewStream(outgoing(ctx), both, method, grpc.ForceCodecV2(frames{}))
	if err != nil {
		return err
	}
	refused := make(chan error, 1)
	go func() {
		err := s.requests(ctx, rule, host, worker, etcd, a.requests)
		if err != nil {
			refused <- err
			cancel()
		}
	}()
	err = copyAnswers(etcd, worker)
	select {
	case reason := <-refused:
		return reason
	default:
		return err
	}
}

// await waits until a worker may make one more change. etcd does not check that the user of
// a lease exists, so the gate checks that this user may still read.
func (s *server) await(ctx context.Context, r rule, a *access, conn *grpc.ClientConn) error {
	if !r.writes {
		return nil
	}
	if err := a.writes.Wait(ctx); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	read, err := proto.Marshal(&etcdserverpb.RangeRequest{Key: []byte(s.Readable[0]), CountOnly: true})
	if err != nil {
		return err
	}
	request, answer := frame(read), frame{}
	return conn.Invoke(ctx, "/etcdserverpb.KV/Range", &request, &answer, grpc.ForceCodecV2(frames{}))
}

// requests passes the requests of a call until the worker has sent the last one.
func (s *server) requests(
	ctx context.Context, r rule, host string, worker grpc.ServerStream, etcd grpc.ClientStream, limit *rate.Limiter,
) error {
	for n := 0; ; n++ {
		var request frame
		if err := worker.RecvMsg(&request); errors.Is(err, io.EOF) {
			return etcd.CloseSend()
		} else if err != nil {
			return err
		}
		if n == mostRequests {
			return status.Error(codes.Unavailable, "the call has too many requests; continue in another call")
		}
		if err := limit.Wait(ctx); err != nil {
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		if err := s.check(ctx, r, host, request); err != nil {
			return status.Error(codes.PermissionDenied, "the request is refused: "+err.Error())
		}
		if err := etcd.SendMsg(&request); err != nil {
			return nil // the answer says why //nolint:nilerr // see above
		}
	}
}

// copyAnswers passes the answers of a call, and returns its status.
func copyAnswers(etcd grpc.ClientStream, worker grpc.ServerStream) error {
	for {
		var answer frame
		if err := etcd.RecvMsg(&answer); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := worker.SendMsg(&answer); err != nil {
			return err
		}
	}
}

// caller returns the common name of the worker's certificate, which is its etcd user.
func caller(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			return info.State.PeerCertificates[0].Subject.CommonName
		}
	}
	return ""
}

// outgoing passes one field of the metadata: a watch with it fails without a leader.
func outgoing(ctx context.Context) context.Context {
	in, _ := metadata.FromIncomingContext(ctx)
	if values := in.Get(rpctypes.MetadataRequireLeaderKey); len(values) > 0 {
		return metadata.AppendToOutgoingContext(ctx, rpctypes.MetadataRequireLeaderKey, values[0])
	}
	return ctx
}

// access returns the access of a host, and its connection as a user.
func (s *server) access(host, user string) (*access, *grpc.ClientConn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.hosts[host]
	if a == nil {
		a = &access{conns: map[string]*grpc.ClientConn{}, calls: semaphore.NewWeighted(mostCalls),
			requests: rate.NewLimiter(requestsPerSecond, mostAtOnce),
			writes:   rate.NewLimiter(writesPerSecond, mostWrites)}
		s.hosts[host] = a
	}
	if conn := a.conns[user]; conn != nil {
		return a, conn, nil
	}
	conn, err := s.connect(user)
	if err != nil {
		return nil, nil, err
	}
	a.conns[user] = conn
	a.dropFormer(user)
	return a, conn, nil
}

// dropFormer closes the connections of the oldest users until mostUsers connections remain. It keeps
// the connection of one user. The names of users sort by age.
func (a *access) dropFormer(except string) {
	for _, user := range slices.Sorted(maps.Keys(a.conns)) {
		if len(a.conns) > mostUsers && user != except {
			_ = a.conns[user].Close()
			delete(a.conns, user)
		}
	}
}

func (s *server) connect(user string) (*grpc.ClientConn, error) {
	trust, err := s.As(user)
	if err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+s.Etcd, grpc.WithTransportCredentials(credentials.NewTLS(trust)),
		grpc.WithIdleTimeout(quietConnection),
		grpc.WithReadBufferSize(smallBuffer), grpc.WithWriteBufferSize(smallBuffer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)))
}

// mostAnswer is larger than the list of all leases, in bytes.
const mostAnswer = 64 << 20

func (s *server) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.hosts {
		for _, conn := range a.conns {
			_ = conn.Close()
		}
	}
}

// frame is a message of gRPC as its bytes.
type frame []byte

// frames is the codec of frames. It has the name of the codec of etcd's clients.
type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*frame))}, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*frame) = data.Materialize()
	return nil
}
