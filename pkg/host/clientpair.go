package host

import "crypto/tls"

// ClientPair returns a callback for tls.Config.GetClientCertificate. It reads
// the files at each handshake, so that a long-running client uses a renewed
// certificate. ClientPair returns an error if it cannot read them now.
func (f Files) ClientPair(cert, key string) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(f.Path(cert), f.Path(key))
		return &pair, err
	}
	_, err := read(nil)
	return read, err
}
