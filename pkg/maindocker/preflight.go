package maindocker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// oldestAPI is the minor API version of Docker 25, the oldest version that can be
// the bootstrap Docker. The bootstrap Docker runs in its own network namespace, and
// containers of an older Docker would share that namespace. The API version is
// compared because custom builds may have no version.
// https://github.com/moby/moby/pull/47101
const oldestAPI = 44

// Problems returns, joined, what is wrong with the host's Docker: docker-missing, docker-stopped,
// docker-hangs, docker-version, docker-flags, docker-settings, docker-unit, daemon-json. Docker must
// share mounts in the directory.
func (d Daemon) Problems(ctx context.Context, sharedDir string) error {
	now, err := readSettings(d.Files)
	return errors.Join(d.problem(ctx), err, settingsProblems(now), UnitFlagProblems(commandLine(d.Files)),
		unitProblems(d.Files, sharedDir))
}

func (d Daemon) problem(ctx context.Context) error {
	// The Docker that answers may run elsewhere, but the bootstrap Docker needs
	// the executable on this host.
	if host.FindProgram(d.Files, "dockerd") == "" {
		return &step.Problem{
			Name: "docker-missing", Firm: true, Text: "dockerd is not installed on this host",
			Remedy: "install Docker (docker.io or docker-ce)",
		}
	}
	engine := d.Engine()
	err := engine.Answers(ctx)
	switch {
	case step.IsUnanswered(err):
		return hangs(d.Units.Init(), err)
	case err != nil && Interrupted(d.Files):
		return nil // an interrupted run has stopped it: Resume starts it
	case err != nil:
		return &step.Problem{
			Name: "docker-stopped", Text: "Docker does not answer on " + engine.Address,
			Remedy: "start it: " + startCommand(d.Units.Init()),
		}
	}
	version, api, err := engine.Version(ctx)
	if err != nil {
		return err
	}
	if tooOld(api) {
		return &step.Problem{
			Name: "docker-version", Text: fmt.Sprintf("Docker %s is too old", version), Remedy: "install 25.0 or later",
		}
	}
	return nil
}

func tooOld(api string) bool {
	_, minor, _ := strings.Cut(api, ".")
	n, err := strconv.Atoi(minor)
	return strings.HasPrefix(api, "1.") && err == nil && n < oldestAPI
}

func startCommand(init string) string {
	switch init {
	case "systemd":
		return "`systemctl start docker`"
	case "openrc":
		return "`rc-service docker start`"
	}
	return "`service docker start`"
}

func restartCommand(init string) string {
	switch init {
	case "systemd":
		return "`systemctl restart docker`"
	case "openrc":
		return "`rc-service docker restart`"
	}
	return "`service docker restart`"
}

// conflicting are flags that Docker refuses together with the same key of
// daemon.json, that disable docker0, or that only daemon.json may set, because
// usesNftables reads nothing else. rebuild sets live-restore, unless it is on.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/config/config.go#L664-L707
var conflicting = []string{
	"bip", "bridge", "b", "mtu", "fixed-cidr", "ip-masq", "iptables", "allow-direct-routing", "bridge-accept-fwmark",
	"config-file", "firewall-backend",
	"default-gateway", liveRestore,
}

// UnitFlagProblems returns a problem for each flag of dockerd that conflicts
// with the settings of Move [docker-flags].
func UnitFlagProblems(args []string) error {
	var errs []error
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !hasValue && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		harmless := (name == "iptables" || name == liveRestore) && value != "false" || name == "config-file" &&
			value == daemonJSON || name == "firewall-backend" && value != "nftables"
		if harmless || !slices.Contains(conflicting, name) {
			continue
		}
		errs = append(errs, flagProblem(name, value))
	}
	return errors.Join(errs...)
}

func flagProblem(name, value string) error {
	flag := strings.TrimSpace("--" + name + " " + value)
	if name == "firewall-backend" {
		return &step.Problem{Name: "docker-flags",
			Text: fmt.Sprintf("Docker is started with %s, which must be a setting of %s", flag, daemonJSON),
			Remedy: "set \"firewall-backend\" there, remove the flag from Docker's unit (with systemd, `systemctl " +
				"cat docker` shows it), /etc/default/docker or /etc/conf.d/docker, and restart Docker"}
	}
	return &step.Problem{Name: "docker-flags",
		Text: fmt.Sprintf("Docker is started with %s, which conflicts with %s", flag, daemonJSON),
		Remedy: "remove it from Docker's unit (with systemd, `systemctl cat docker` shows it), /etc/default/docker " +
			"or /etc/conf.d/docker, and restart Docker"}
}

// settingsProblems returns a problem for each setting that disables docker0, or with which
// Docker or the pods would not start.
func settingsProblems(owner settings) error {
	var errs []error
	for _, key := range []string{"bridge", "iptables"} {
		value, set := owner[key]
		if !set || key == "iptables" && value != false || key == "bridge" && value == "" {
			continue
		}
		errs = append(errs, &step.Problem{Name: "docker-flags",
			Text:   fmt.Sprintf("%s: %s is %v, so Docker does not manage docker0", daemonJSON, key, value),
			Remedy: "remove the key and restart Docker"})
	}
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		if why := refused[key](owner[key]); owner[key] != nil && why != "" {
			errs = append(errs,
				&step.Problem{Name: "docker-settings",
					Text:   daemonJSON + ": " + key + fmt.Sprintf(" is %v: ", owner[key]) + why,
					Remedy: "remove or change the key and restart Docker", Firm: true})
		}
	}
	return errors.Join(errs...)
}

// refused returns why a value of a key cannot stay, "" if it can.
var refused = map[string]func(value any) string{
	"default-gateway": func(any) string {
		return "Docker does not start with a gateway outside of flannel's subnet"
	},
	"containerd-namespace":        podNamespace,
	"containerd-plugin-namespace": podNamespace,
	"hosts": func(value any) string {
		all, _ := value.([]any)
		local := func(address any) bool { return slices.Contains(localAddresses, fmt.Sprint(address)) }
		if len(all) == 0 || slices.ContainsFunc(all, local) {
			return ""
		}
		return "kube-bootstrap needs unix:///var/run/docker.sock there"
	},
	"rootless": func(value any) string {
		if value != true {
			return ""
		}
		return "a Docker without the rights of root cannot run the kubelet"
	},
}

// localAddresses are those at which Docker serves its default socket.
var localAddresses = []string{"unix:///var/run/docker.sock", "unix:///run/docker.sock", "unix://", "fd://"}

func podNamespace(value any) string {
	if value != "k8s.io" {
		return ""
	}
	return "this is the namespace of the pods in containerd"
}
