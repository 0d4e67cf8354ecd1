package host

import "crypto/tls"

// ClientPair returns a callback for tls.Config.GetClientCertificate. It reads
// the files at each handshake, so that a long-running client uses a renewed
// certificate. ClientPair returns an error if it cannot read them now.
func ClientPair(files Files, cert, key string) (func(*tls.CertificateRequestInfo) (*tls.Certificate, error), error) {
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(files.Path(cert), files.Path(key))
		return &pair, err
	}
	_, err := read(nil)
	return read, err
}
