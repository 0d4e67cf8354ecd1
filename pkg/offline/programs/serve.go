package programs

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/link/clients"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// machines are the limits of a machine that fetches the program.
var machines = clients.Limits{
	Silence: 30 * time.Second, PerByte: 60 * time.Microsecond, Idle: 10 * time.Second, Header: 16 << 10, Connections: 4,
}

// Serve serves this program on a free port of an address until stop ends. It writes one line for the
// client: the port, and the hash of its public key as `curl --pinnedpubkey` reads it. The program is not
// secret, so that no client needs a credential.
func Serve(ctx context.Context, addr netip.Addr, stop io.Reader, out io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	certificate, key, err := ephemeral()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", netip.AddrPortFrom(addr, 0).String())
	if err != nil {
		return err
	}
	server := machines.Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w, r, end := machines.Request(w, r)
		defer end()
		http.ServeFile(w, r, program)
	}))
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	go func() {
		_, _ = io.Copy(io.Discard, stop)
		_ = server.Close()
	}()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := fmt.Fprintln(out, listener.Addr().(*net.TCPAddr).Port, key); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ephemeral returns a certificate for one run, and the hash of its public key.
func ephemeral() (tls.Certificate, string, error) {
	own, err := pki.NewAuthority(name, nil, time.Now())
	if err != nil {
		return tls.Certificate{}, "", err
	}
	sum := sha256.Sum256(own.Cert.RawSubjectPublicKeyInfo)
	certificate, err := tls.X509KeyPair(own.PEM().Cert, own.PEM().Key)
	return certificate, "sha256//" + base64.StdEncoding.EncodeToString(sum[:]), err
}
