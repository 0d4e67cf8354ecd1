package pki

import "crypto/tls"

// CipherSuites returns the names of the TLS 1.2 cipher suites that the
// components of Kubernetes may use: those with forward secrecy and
// authenticated encryption, as the CIS Kubernetes Benchmark asks for. The suites
// of TLS 1.3 are not a setting. A change of the order restarts the API server.
func CipherSuites() (names []string) {
	for _, suite := range strongSuites {
		names = append(names, tls.CipherSuiteName(suite))
	}
	return names
}

var strongSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
}
