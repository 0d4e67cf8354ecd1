package firewall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The files of firewalld.zone(5) and firewalld.policy(5). A policy cannot have the name of a
// zone. docker0 is not part of the zone: Docker puts it into its own, and fails if it is in
// another one (https://github.com/moby/moby/issues/52642). The policy to the zone permits what Docker's
// policy docker-forwarding permits to docker0: firewalld does not apply that one to an address of the
// zone, because it looks at the sources of zones before their interfaces.
// https://github.com/firewalld/firewalld/blob/v2.4.4/src/firewall/core/io/policy.py#L888-L892
// https://github.com/firewalld/firewalld/blob/v2.4.4/src/firewall/core/nftables.py#L1199-L1209
const (
	zoneFile   = "/etc/firewalld/zones/" + name + ".xml"
	toPodsFile = "/etc/firewalld/policies/" + toPods + ".xml"
	toHostFile = "/etc/firewalld/policies/" + toHost + ".xml"
	toPods     = name + "-to"
	toHost     = name + "-in"

	firewalldConf = "/etc/firewalld/firewalld.conf"
	firewalldUnit = "firewalld"
)

// firewalldFiles returns the policy of the ports first: a firewalld that has loaded any of the files
// has loaded this one, which permittedPorts looks for.
func (a Access) firewalldFiles() []host.File {
	const head = `<?xml version="1.0" encoding="utf-8"?>` + "\n"
	const policy = "<policy target=%q priority=\"-100\">\n  <short>" + name + "</short>\n" +
		"  <ingress-zone name=\"ANY\"/>\n  <egress-zone name=%q/>\n%s</policy>\n"
	var ports strings.Builder
	for _, p := range sorted(a.Ports) {
		fmt.Fprintf(&ports, "  <port port=\"%d\" protocol=%q/>\n", p.Number, p.Protocol)
	}
	zone := fmt.Sprintf("<zone target=\"ACCEPT\">\n  <short>"+name+"</short>\n  <source address=\"%s\"/>\n</zone>\n",
		a.Pods)
	return []host.File{
		{Path: toHostFile, Data: []byte(head + fmt.Sprintf(policy, "CONTINUE", "HOST", ports.String())), Mode: 0o644},
		{Path: zoneFile, Data: []byte(head + zone), Mode: 0o644},
		{Path: toPodsFile, Data: []byte(head + fmt.Sprintf(policy, "ACCEPT", name, "")), Mode: 0o644},
	}
}

func (a Access) firewalldActive(ctx context.Context) (bool, error) {
	if !host.HasProgram("firewall-cmd") {
		return false, nil
	}
	return a.Units.Active(ctx, firewalldUnit)
}

func (a Access) firewalldDiff(ctx context.Context) (step.Diff, error) {
	if active, err := a.firewalldActive(ctx); err != nil || !active {
		return nil, err
	}
	diff, err := a.Files.Missing(a.firewalldFiles())
	if err != nil || len(diff) > 0 {
		return diff, err
	}
	permitted, err := permittedPorts(ctx)
	if err == nil && permitted != a.portList() {
		diff = append(diff, "reload firewalld")
	}
	return diff, err
}

func (a Access) portList() string {
	var all []string
	for _, p := range sorted(a.Ports) {
		all = append(all, p.String())
	}
	return strings.Join(all, " ")
}

// permittedPorts returns the ports that the running firewalld permits by the policy, in the
// order of portList; "" without the policy.
func permittedPorts(ctx context.Context) (string, error) {
	policies, err := host.Run(ctx, "firewall-cmd", "--get-policies")
	if err != nil || !strings.Contains(" "+policies+" ", " "+toHost+" ") {
		return "", err
	}
	text, err := host.Run(ctx, "firewall-cmd", "--policy="+toHost, "--list-ports")
	if err != nil {
		return "", err
	}
	var now Access
	for _, word := range strings.Fields(text) {
		var p Port // stays zero for a range of ports, which is not of kube-bootstrap
		_, _ = fmt.Sscanf(word, "%d/%s", &p.Number, &p.Protocol)
		now.Ports = append(now.Ports, p)
	}
	return now.portList(), nil
}

// applyFirewalld has firewalld check the files before it reloads them: after a failed
// reload it would reject all packets.
func (a Access) applyFirewalld(ctx context.Context) error {
	diff, err := a.firewalldDiff(ctx)
	if err != nil || len(diff) == 0 {
		return err
	}
	if err := a.Files.Put(a.firewalldFiles()); err != nil {
		return err
	}
	if _, err := host.Run(ctx, "firewall-cmd", "--check-config"); err != nil {
		return errors.Join(fmt.Errorf("firewalld refuses its configuration with the zone and the policies of "+
			"kube-bootstrap: %w; "+
			"correct what `firewall-cmd --check-config` reports; `firewall-cmd --get-active-zones` lists zones with "+
			"the same source", err), a.dropFirewalldFiles())
	}
	_, err = host.Run(ctx, "firewall-cmd", "--reload")
	return err
}

func (a Access) undoFirewalld(ctx context.Context) error {
	if err := a.dropFirewalldFiles(); err != nil {
		return err
	}
	if active, err := a.firewalldActive(ctx); err != nil || !active {
		return err
	}
	permitted, err := permittedPorts(ctx)
	if err == nil && permitted != "" {
		_, err = host.Run(ctx, "firewall-cmd", "--reload")
	}
	return err
}

// dropFirewalldFiles removes the files in the reverse order of firewalldFiles, so that the policy
// which refers to the zone is removed before it.
// firewalld keeps the former version of a file that one of its programs has changed.
// https://github.com/firewalld/firewalld/blob/v2.4.4/src/firewall/core/io/zone.py#L479-L481
func (a Access) dropFirewalldFiles() error {
	for _, path := range []string{toPodsFile, zoneFile, toHostFile} {
		if err := a.Files.Drop(path, path+".old"); err != nil {
			return err
		}
	}
	return nil
}

// Problem returns the problem that firewalld rejects what other programs translate
// [firewalld-strict]: packets to Services, NodePorts, host ports and published ports.
// https://github.com/firewalld/firewalld/blob/v2.4.4/doc/xml/firewalld.conf.xml#L223-L233
func Problem(ctx context.Context, a Access) error {
	active, err := a.firewalldActive(ctx)
	if err != nil || !active {
		return err
	}
	conf, err := a.Files.Read(firewalldConf)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !isSet(string(conf), "StrictForwardPorts", "yes") {
		return nil
	}
	if err != nil {
		return err
	}
	return &step.Problem{
		Name: "firewalld-strict",
		Text: firewalldConf +
			": StrictForwardPorts is yes, so firewalld rejects packets to Services, NodePorts and published ports of " +
			"containers",
		Remedy: "set StrictForwardPorts=no there, and run `firewall-cmd --reload`",
	}
}

// isSet reports whether the last line KEY=VALUE with the key has the value.
func isSet(conf, key, value string) (set bool) {
	for line := range strings.Lines(conf) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.TrimSpace(k) == key {
			set = strings.EqualFold(strings.Trim(strings.TrimSpace(v), `"'`), value)
		}
	}
	return set
}
