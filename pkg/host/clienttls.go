package host

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// ClientTLS returns the configuration of a client that trusts the authorities in the
// file ca, and shows the certificate in the file cert, or none if cert is empty. It
// returns an error if it cannot read the files now. The client reads its certificate
// at each handshake, so that a long-running one uses a renewed certificate.
func ClientTLS(files Files, ca, cert, key string) (*tls.Config, error) {
	authorities, err := files.Read(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	if !config.RootCAs.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("no certificate in %s", ca)
	}
	if cert == "" {
		return config, nil
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(files.Path(cert), files.Path(key))
		return &pair, err
	}
	_, err = config.GetClientCertificate(nil)
	return config, err
}
