package imagestore

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	containerd "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestLeaseEndsAfterAnInterrupt: the deletion of the lease is requested after a cancellation,
// too, and has a limit, because containerd may hang.
func TestLeaseEndsAfterAnInterrupt(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	listener, err := net.Listen("unix", socket)
	must.NoError(t, err)
	limits := make(chan time.Duration, 1)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var limit time.Duration
		if end, limited := stream.Context().Deadline(); limited {
			limit = time.Until(end)
		}
		limits <- limit
		return stream.SendMsg(&emptypb.Empty{})
	}))
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.NoError(t, err)
	client, err := containerd.NewWithConn(conn, containerd.WithDefaultNamespace(criNamespace))
	must.NoError(t, err)
	defer client.Close()

	ctx, interrupt := context.WithCancel(leases.WithLease(t.Context(), "of a load"))
	refused := errors.New("interrupted")
	err = leased(ctx, client, func(context.Context) error {
		interrupt()
		return refused
	})
	if limit := <-limits; !errors.Is(err, refused) || limit <= 0 || limit > time.Minute {
		t.Errorf("got %v; limit of the deletion: %s", err, limit)
	}
}
