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

// Due returns the names of the certificates of this host that must be renewed:
// less than a third of the lifetime is left. A certificate that was removed is not
// renewed.
func (p PKI) Due() []string {
	var names []string
	for _, l := range p.leaves() {
		pair, err := readLeaf(p.Files, l)
		if err != nil {
			continue
		}
		if cert, err := pki.ParseCertificate(pair.Cert); err == nil && pki.Expiring(cert, p.now()) != "" {
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

// UseRenewed returns the plan with which the programs use renewed certificates
// and keys, one after the other. The API server notices new certificates by
// itself, and is replaced only for a new key. The others read theirs only when
// they start.
func (s StaticPods) UseRenewed() step.Plan {
	apiserver := func() (component, error) {
		reads, err := s.apiserverFiles()
		return s.apiserver(reads), err
	}
	manager := func() (component, error) { return s.manager(), nil }
	scheduler := func() (component, error) { return s.scheduler(), nil }
	return step.Plan{
		{s.restart("kube-apiserver", apiserver)},
		{step.Wait("wait until the API server serves with its certificate", s.servesRenewed, nil)},
		{s.restart("kube-controller-manager", manager)},
		{s.restart("kube-scheduler", scheduler)},
	}
}

// restart replaces the static pod if what it read has changed, and waits until
// it is healthy.
func (s StaticPods) restart(name string, part func() (component, error)) step.Step {
	return step.Step{
		Name: "have " + name + " use its certificate",
		Check: func(ctx context.Context) (step.Diff, error) {
			p, _, diff, err := s.outdated(part)
			if err != nil || len(diff) > 0 {
				return diff, err
			}
			err = p.healthy(ctx)
			return step.DiffOf(err, fmt.Sprintf("wait for %s: %v", name, err))
		},
		Apply: func(ctx context.Context) error {
			p, pods, diff, err := s.outdated(part)
			if err == nil && len(diff) > 0 {
				err = exchange(ctx, s.Files, pods)
			}
			if err != nil {
				return err
			}
			return step.Until(ctx, p.healthy, nil)
		},
	}
}

// outdated compares the static pod with the manifest that the files of this host
// require.
func (s StaticPods) outdated(part func() (component, error)) (p component, pods []host.File, diff step.Diff, err error) {
	if p, err = part(); err != nil {
		return p, nil, nil, err
	}
	if pods, err = s.podsOf(p); err != nil {
		return p, nil, nil, err
	}
	diff, err = s.Files.Missing(pods)
	return p, pods, diff, err
}

// anyone trusts every server: it is used only on ports of this host, for answers
// that are not secret.
var anyone = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}

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

// servesRenewed returns nil once the API server shows the certificate in its
// file.
func (s StaticPods) servesRenewed(ctx context.Context) error {
	data, err := s.Files.Read(apiserver + ".crt")
	if err != nil {
		return err
	}
	want, err := pki.ParseCertificate(data)
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
