package host

import "crypto/tls"

// ClientPair returns what a TLS client shows: the pair in the two files as it is
// at each handshake, so that a client that lives longer than its certificate
// shows the renewed one. The error is that of the first read.
func (f Files) ClientPair(cert, key string) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Path(cert), f.Path(key))
		return &pair, err
	}
	_, err := read(nil)
	return read, err
}
