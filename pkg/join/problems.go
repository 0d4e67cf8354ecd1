package join

import (
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// A user has to know which of the things that keep a host out it is, so each
// has its own name. None of them repeats the token's secret.

func malformedID() error {
	return &step.Problem{
		Name:   "token-format",
		Text:   "the token id is malformed: it must be 6 letters or digits in lower case",
		Remedy: "take it from `kube-bootstrap token list`",
	}
}

func unreachable(server string, err error) error {
	return &step.Problem{
		Name:   "master-unreachable",
		Text:   fmt.Sprintf("the API server %s cannot be reached: %v", server, err),
		Remedy: "check MASTER_IP, the network between the hosts, and `kube-bootstrap status` on the master",
	}
}

func missingHash() error {
	return &step.Problem{
		Name:   "ca-cert-hash",
		Text:   "--ca-cert-hash is missing: a host that joins knows its cluster by it",
		Remedy: "copy it as `kube-bootstrap token create` printed it",
	}
}

func malformedHash() error {
	return &step.Problem{
		Name:   "ca-cert-hash",
		Text:   "--ca-cert-hash is malformed: it must be sha256: and 64 hexadecimal digits",
		Remedy: "copy it as `kube-bootstrap token create` printed it",
	}
}

func wrongCA(server string) error {
	return &step.Problem{
		Name: "ca-cert-hash",
		Text: fmt.Sprintf("no certificate authority that %s shows has the hash given with --ca-cert-hash: the hash is "+
			"wrong, or another machine answers in the master's place; the token was not sent", server),
		Remedy: "compare with the hash that `kube-bootstrap token create` prints on the master; `certs rotate --ca` changes it",
	}
}

func impostor(server string, err error) error {
	return &step.Problem{
		Name: "man-in-the-middle",
		Text: fmt.Sprintf("%s shows the cluster's certificate authority, but its own certificate is not from there (%v): "+
			"another machine answers in the master's place; the token was not sent", server, err),
		Remedy: "find out what stands between this host and the master",
	}
}

func wrongAddress(server string, err error) error {
	return &step.Problem{
		Name:   "master-address",
		Text:   fmt.Sprintf("the certificate of %s is from this cluster but not for that address (%v); the token was not sent", server, err),
		Remedy: "use the address that `kube-bootstrap token create` prints on the master",
	}
}

func clockOff(server string, there, here time.Time) error {
	return &step.Problem{
		Name: "clock",
		Text: fmt.Sprintf("the clocks differ by %s: %s has %s, this host has %s", there.Sub(here).Abs().Round(time.Second),
			server, there.UTC().Format(time.RFC3339), here.UTC().Format(time.RFC3339)),
		Remedy: "set the clock that is wrong",
	}
}

func notNow(server string, err error) error {
	return &step.Problem{
		Name:   "clock",
		Text:   fmt.Sprintf("the certificate of %s is not valid at the time that this host's clock shows: %v", server, err),
		Remedy: "set the clock of this host, or run `kube-bootstrap master` on the master, which renews it, if it has really expired",
	}
}

// unknownToken is one problem for every reason, because an API server answers 401
// to each and says no more to an unknown client.
func unknownToken(server string, t Token) error {
	return &step.Problem{
		Name:   "token-unknown",
		Text:   fmt.Sprintf("%s does not accept the token %s: it is wrong, has expired, was deleted or was used by another host", server, t),
		Remedy: "create one with `kube-bootstrap token create` on a control plane",
	}
}

func otherKind(t Token, is, want Kind) error {
	remedy := "create one with `kube-bootstrap token create` on a control plane"
	if want == ForControlPlane {
		remedy = "create one with `kube-bootstrap token create --control-plane` on a control plane"
	}
	text := fmt.Sprintf("the token %s is for a %s, and this host joins as a %s", t, is, want)
	if is == "" {
		text = fmt.Sprintf("the token %s was not created by kube-bootstrap", t)
	}
	return &step.Problem{Name: "token-kind", Text: text, Remedy: remedy}
}

func otherNode(t Token, is, want string) error {
	return &step.Problem{
		Name:   "token-node",
		Text:   fmt.Sprintf("the token %s is for node %s, and the name of this host is %s", t, is, want),
		Remedy: "create one with `kube-bootstrap token create --node " + want + "` on a control plane, or correct the name with --host-name",
	}
}

const notJoinable = "not-joinable"

func notAMaster(server, what string) error {
	return &step.Problem{
		Name:   notJoinable,
		Text:   fmt.Sprintf("%s does not hand over %s", server, what),
		Remedy: "let `kube-bootstrap master` finish on the master, then try again",
	}
}

func unsigned(server string, t Token) error {
	return &step.Problem{
		Name:   "cluster-info",
		Text:   fmt.Sprintf("the cluster-info of %s is not signed with the token %s", server, t),
		Remedy: "check that the controller manager runs on the master, then try again",
	}
}

func forged(server string) error {
	return &step.Problem{
		Name:   "cluster-info-forged",
		Text:   fmt.Sprintf("the cluster-info of %s has a wrong signature, or names another certificate authority: it was changed by someone who does not know the token", server),
		Remedy: "find out who may write ConfigMaps in kube-public",
	}
}

func joinedAnother() error {
	return &step.Problem{
		Name:   "joined-another",
		Text:   "this host belongs to another cluster: its certificate authority does not have the hash given with --ca-cert-hash",
		Remedy: "run `kube-bootstrap turndown` first; if `certs rotate --ca` has replaced the certificate authority of this very cluster, leave out --ca-cert-hash",
	}
}

func lostHandover(err error) error {
	return &step.Problem{
		Name:   "handover-lost",
		Text:   fmt.Sprintf("this host has lost a part of what its cluster handed over: %v", err),
		Remedy: "restore the file from a copy, or run the same command with a token and a hash of `kube-bootstrap token create`",
	}
}

func keyExpired(server string) error {
	return &step.Problem{
		Name:   "certificate-key",
		Text:   server + " no longer hands over what control planes share: that is good for two hours",
		Remedy: "make a new key with `kube-bootstrap token create --control-plane` on a control plane",
	}
}
