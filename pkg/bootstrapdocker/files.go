package bootstrapdocker

import (
	"bytes"
	"embed"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
)

// config is the daemon's configuration file. Without it dockerd would read
// the main Docker's /etc/docker/daemon.json. Images are below the data root
// rather than in containerd, so that they are removed with it. etcd and
// flanneld keep running when the daemon ends.
const config = `{"features": {"containerd-snapshotter": false}, "live-restore": true}` + "\n"

// mark identifies an init script of kube-bootstrap.
const mark = "# Written by kube-bootstrap; its turndown removes it."

//go:embed *.service *.sysv *.openrc
var unitFiles embed.FS

// tree returns the configuration and the files for the init system.
func (d Dockerd) tree() ([]host.File, error) {
	v, err := d.values()
	if err != nil {
		return nil, err
	}
	return []host.File{{Path: configFile, Data: []byte(config)}, initsystem.ServiceFile(d.Units, unit, unitFiles, v)},
		nil
}

func (d Dockerd) ours(path string) bool {
	data, err := d.Files.Read(path)
	return err == nil && bytes.Contains(data, []byte(mark))
}

// ServiceFiles are the possible files of the service.
var ServiceFiles = []string{"/etc/systemd/system/" + unit + ".service", "/etc/init.d/" + unit}

// values returns the values in the unit file and the init scripts.
func (d Dockerd) values() (map[string]any, error) {
	dockerd, err := d.binary("dockerd")
	if err != nil {
		return nil, err
	}
	unshare, err := d.binary("unshare")
	if err != nil {
		return nil, err
	}
	v := map[string]any{
		// With --bridge=none, dockerd deletes the link docker0 of the main Docker
		// at each start. It therefore runs in its own network namespace. Its
		// containers use the host's network, because containerd starts them.
		// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/daemon_unix.go#L887-L893
		// https://github.com/containerd/containerd/issues/10280
		"Mark": mark, "Dockerd": dockerd, "Command": []string{unshare, "-n", dockerd}, "Args": d.args(),
		"Socket": Socket, "ContainerdSocket": containerdSocket,
		"PidFile": pidFile, "SuperviseFile": superviseFile,
		"LogFile": logFile, "ContainerdLog": containerdLog, "ContainerdPid": containerdPid,
	}
	if d.Units.Init() != "systemd" {
		v["Containerd"], err = d.binary("containerd")
	}
	return v, err
}

func (d Dockerd) binary(name string) (string, error) {
	if path := host.FindProgram(d.Files, name); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("no %s in %s; install Docker, and util-linux for unshare",
		name, strings.Join(host.ProgramDirs, ", "))
}

func (d Dockerd) args() []string {
	args := []string{
		"--host=unix://" + Socket,
		"--group=root",
		"--config-file=" + configFile,
		"--data-root=" + dataRoot,
		"--exec-root=" + execRoot,
		"--pidfile=" + pidFile,
		"--containerd=" + containerdSocket,
		"--containerd-namespace=" + namespace,
		"--containerd-plugins-namespace=" + pluginsNamespace,
		"--bridge=none",
		"--iptables=false",
		"--ip6tables=false",
		"--ip-masq=false",
		"--ip-forward=false",
		"--userland-proxy=false",
	}
	if d.ownCgroup() {
		args = append(args, "--cgroup-parent=/"+cgroup)
	}
	return args
}

// ownCgroup reports whether dockerd's containers get a separate parent
// cgroup. With the systemd driver, which dockerd selects under systemd on
// cgroup v2, they are scopes in system.slice, which systemd removes.
// https://github.com/moby/moby/blob/docker-v29.7.2/daemon/daemon_unix.go#L598-L601
func (d Dockerd) ownCgroup() bool {
	return d.Units.Init() != "systemd" || !d.Files.Exists("/sys/fs/cgroup/cgroup.controllers")
}
