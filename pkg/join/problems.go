package join

import (
	"errors"
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// problemNamed returns a problem. Each reason why a host cannot join has its own problem name. No text contains
// the secret of a token.
func problemNamed(name, text, remedy string) *step.Problem {
	return &step.Problem{Name: name, Text: text, Remedy: remedy}
}

const controlPlaneUnreachable = "control-plane-unreachable"

func unreachable(server string, err error) error {
	return problemNamed(controlPlaneUnreachable,
		fmt.Sprintf("the API server %s cannot be reached: %v", server, err),
		"check MASTER_IP, the network between the hosts, and `kube-bootstrap status` on the control plane")
}

// isProblem reports whether err is the problem of that name.
func isProblem(err error, name string) bool {
	problem, ok := errors.AsType[*step.Problem](err)
	return ok && problem.Name == name
}

func wrongCA(server string) error {
	return problemNamed("ca-cert-hash",
		fmt.Sprintf("no certificate authority that %s shows has the hash given with --ca-cert-hash: the hash is "+
			"wrong, or another machine answers in the place of the control plane; the token was not sent", server),
		"compare with the hash that `kube-bootstrap token create` prints on the control plane; `certs rotate --ca` "+
			"changes it")
}

func impostor(server string, err error) error {
	return problemNamed("man-in-the-middle",
		fmt.Sprintf("%s shows the cluster's certificate authority, but its own certificate is not from there (%v): "+
			"another machine answers in the place of the control plane; the token was not sent", server, err),
		"find out what stands between this host and the control plane")
}

func wrongAddress(server string, err error) error {
	return problemNamed("master-address",
		fmt.Sprintf("the certificate of %s is from this cluster but not for that address (%v); the token was not sent",
			server, err),
		"use the address that `kube-bootstrap token create` prints on the control plane")
}

func clockOff(server string, there, here time.Time) error {
	return problemNamed("clock",
		fmt.Sprintf("the clocks differ by %s: %s has %s, this host has %s", there.Sub(here).Abs().Round(time.Second),
			server, there.UTC().Format(time.RFC3339), here.UTC().Format(time.RFC3339)),
		"set the clock that is wrong")
}

func notNow(server string, err error) error {
	return problemNamed("clock",
		fmt.Sprintf("the certificate of %s is not valid at the time that this host's clock shows: %v", server, err),
		"set the clock of this host, or run `kube-bootstrap master` on the control plane, which renews it, if it has "+
			"really expired")
}

const tokenUnknown = "token-unknown"

// unknownToken is one problem for every reason, because an API server answers 401 to each and says no more to
// an unknown client.
func unknownToken(server string, t Token) error {
	return problemNamed(tokenUnknown,
		fmt.Sprintf("%s does not accept the token %s: it is wrong, expired, deleted, or used already", server, t),
		"create one with `kube-bootstrap token create` on a control plane")
}

func otherKind(t Token, is, want HostKind) error {
	remedy := "create one with `kube-bootstrap token create` on a control plane"
	if want == ForControlPlane {
		remedy = "create one with `kube-bootstrap token create --control-plane` on a control plane"
	}
	text := fmt.Sprintf("the token %s is for a %s, and this host joins as a %s", t, is, want)
	if is == "" {
		text = fmt.Sprintf("the token %s was not created by kube-bootstrap", t)
	}
	return problemNamed("token-kind", text, remedy)
}

func otherNode(t Token, is, want string) error {
	return problemNamed("token-node",
		fmt.Sprintf("the token %s is for node %s, and the name of this host is %s", t, is, want),
		"create one with `kube-bootstrap token create --node "+want+
			"` on a control plane, or correct the name with --host-name")
}

const notJoinable = "not-joinable"

func notAControlPlane(server, what string) error {
	return problemNamed(notJoinable,
		fmt.Sprintf("%s does not publish %s", server, what),
		"let `kube-bootstrap master` finish on the control plane, then try again")
}

func unsigned(server string, t Token) error {
	return problemNamed("cluster-info",
		fmt.Sprintf("the cluster-info of %s is not signed with the token %s", server, t),
		"check that the controller manager runs on the control plane, then try again")
}

func forged(server string) error {
	return problemNamed("cluster-info-forged",
		fmt.Sprintf("the cluster-info of %s has a wrong signature, or names another certificate authority: it was "+
			"changed by someone who does not know the token", server),
		"find out who may write ConfigMaps in kube-public")
}

func lostData(err error) error {
	return problemNamed("join-data-lost",
		fmt.Sprintf("this host has lost a part of its join data: %v", err),
		"restore the file from a copy, or run this command with a token and a hash of `kube-bootstrap token create`")
}
