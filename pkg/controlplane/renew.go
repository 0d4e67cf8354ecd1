package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// RenewingFile exists from the beginning of a renewal to its end. After an
// interruption it shows that components may still use their old certificates.
const RenewingFile = host.StateDir + "/renewing"

// Due returns the names of the certificates of this host of whose lifetime less than a
// third is left.
func (p PKI) Due() []string {
	var names []string
	for _, l := range p.leaves() {
		pair, err := readLeaf(p.Files, l)
		if err != nil {
			continue
		}
		if cert, err := pki.ParseCertificate(pair.Cert); err == nil && pki.Expiring(cert, p.Now()) != "" {
			names = append(names, certificateName(l.path))
		}
	}
	return names
}

// Renew issues the certificates of those names again, and no others.
func (p PKI) Renew(names []string) step.Step {
	renewed := map[string][]byte{}
	for _, l := range p.leaves() {
		if slices.Contains(names, certificateName(l.path)) {
			renewed[l.name()] = content(p.Files, l.name())
		}
	}
	return p.issue(renewed)
}

// UseRenewed returns the plan with which the programs use renewed certificates and
// keys, one after the other. The API server notices new certificates by itself, and
// is replaced only for a new key. The others read theirs only when they start.
func (s StaticPods) UseRenewed() step.Plan {
	apiserver := func() ([]host.File, error) {
		_, pods, err := s.podFiles()
		return pods, err
	}
	return step.Plan{
		{s.restart(s.apiserver(nil), apiserver)},
		{step.Wait("wait-for-renewed-apiserver", "wait until the API server serves with its certificate",
			s.servesRenewed, nil)},
		{s.restart(s.manager(), func() ([]host.File, error) { return s.podsOf(s.manager()) })},
		{s.restart(s.scheduler(), func() ([]host.File, error) { return s.podsOf(s.scheduler()) })},
	}
}

// restart replaces a static pod if what it read has changed, and waits for its health.
func (s StaticPods) restart(p component, pods func() ([]host.File, error)) step.Step {
	replace := s.podStep(step.IDOf("renew", p.name), "have "+p.name+" use its certificate", pods)
	check, apply := replace.Check, replace.Apply
	replace.Check = func(ctx context.Context) (step.Diff, error) {
		if diff, err := check(ctx); err != nil || len(diff) > 0 {
			return diff, err
		}
		err := p.healthy(ctx)
		return step.DiffOf(err, fmt.Sprintf("wait for %s: %v", p.name, err))
	}
	replace.Apply = func(ctx context.Context) error {
		if err := apply(ctx); err != nil {
			return err
		}
		return step.Until(ctx, p.healthy, nil)
	}
	return replace
}

// anyone trusts every server: it is used only on ports of this host, for answers
// that are not secret.
var anyone = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above

func (p component) healthy(ctx context.Context) error {
	client := http.Client{Transport: &http.Transport{TLSClientConfig: anyone, DisableKeepAlives: true}}
	url := "https://" + net.JoinHostPort(p.host, strconv.Itoa(p.port)) + p.ready
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}

// servesRenewed returns nil once the API server shows the certificate in its file.
func (s StaticPods) servesRenewed(ctx context.Context) error {
	want, err := pki.ReadCertificate(s.Files.Read, apiserver+".crt")
	if err != nil {
		return err
	}
	conn, err := (&tls.Dialer{Config: anyone}).DialContext(ctx, "tcp", net.JoinHostPort(s.IP, strconv.Itoa(s.APIPort)))
	if err != nil {
		return err
	}
	defer conn.Close()
	if shown := conn.(*tls.Conn).ConnectionState().PeerCertificates; len(shown) == 0 || !shown[0].Equal(want) {
		return errors.New("the API server serves with its old certificate")
	}
	return nil
}
