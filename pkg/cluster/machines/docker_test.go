package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// programs returns a directory with two kinds of programs. The named ones write their names and arguments to
// the file calls; a name that ends with ! makes the program fail. The others are the real programs that
// the scripts call.
func programs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		code := "0"
		if failing, ok := strings.CutSuffix(name, "!"); ok {
			name, code = failing, "100"
		}
		script := "#!/bin/sh\necho " + name + ` "$@" >>` + dir + "/calls\necho " + name + " says\nexit " + code + "\n"
		must.NoError(t, os.Chmod(must.Write(t, filepath.Join(dir, name), script), 0o755))
	}
	for _, name := range []string{"mkdir", "touch", "rm"} {
		path, err := exec.LookPath(name)
		must.NoError(t, err)
		must.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// inits are the programs of init systems.
var inits = []string{"systemctl", "service", "rc-service", "rc-update", "update-rc.d"}

// runDocker runs dockerScript with these programs, and returns their calls, without those of the init system.
func runDocker(t *testing.T, path, dir, manager, packages string) (calls []string, err error) {
	t.Helper()
	args := access.Script(dockerScript, dir, manager, packages)
	_, err = host.Command{Args: args, Env: []string{"PATH=" + path}}.Run(t.Context())
	for line := range strings.Lines(string(must.Read(t, filepath.Join(path, "calls")))) {
		if tool, _, _ := strings.Cut(line, " "); !strings.Contains(strings.Join(inits, " "), tool) {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	return calls, err
}

func TestDockerComesFromThePackageManager(t *testing.T) {
	const apt = "apt-get -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "
	for _, c := range []struct {
		manager, file string
		want          []string
	}{
		{"apt-get", "", []string{"dpkg --configure -a", apt + "update", apt + "install docker.io"}},
		{"dnf", "", []string{"dnf -q list moby-engine", "dnf -y install moby-engine"}},
		{"yum", "", []string{"yum -q list moby-engine", "yum -y install moby-engine"}},
		{"zypper", "", []string{"zypper --non-interactive install docker"}},
		{"apk", "", []string{"apk add --update-cache docker"}},
		{"apt-get", "d.deb", []string{
			"dpkg --configure -a", apt + "-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null " +
				"-o APT::Default-Release= install FILE",
		}},
		{"dnf", "d.rpm", []string{"dnf -y --disablerepo=* install FILE"}},
		{"zypper", "d.rpm", []string{"zypper --non-interactive --no-remote install FILE"}},
		{"apk", "d.apk", []string{"apk add --no-network FILE"}},
	} {
		path, dir, packages := programs(t, append(inits, c.manager, "dpkg", "dockerd")...), t.TempDir(), ""
		if c.file != "" {
			packages = filepath.Dir(must.Write(t, filepath.Join(dir, "packages", c.file), ""))
		}
		calls, err := runDocker(t, path, dir, c.manager, packages)
		must.NoError(t, err)
		want := strings.ReplaceAll(strings.Join(c.want, "\n"), "FILE", filepath.Join(packages, c.file))
		if got := strings.Join(calls, "\n"); got != want {
			t.Errorf("%s %s:\n%s\nwant:\n%s", c.manager, c.file, got, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s %s: left %v, %v", c.manager, c.file, left, err)
		}
	}
}

func TestAnInstallationThatFailsIsRepeated(t *testing.T) {
	for what, c := range map[string]struct {
		tools []string
		want  string
	}{
		"the package manager fails": {[]string{"apt-get!", "dpkg"}, "apt-get says"},
		"there is no dockerd":       {[]string{"apt-get", "dpkg"}, "do not contain dockerd"},
	} {
		dir := t.TempDir()
		_, err := runDocker(t, programs(t, append(inits, c.tools...)...), dir, "apt-get", "")
		err = dockerError(Machine{}, Facts{PackageManager: "apt-get"}, err)
		if err == nil || !strings.Contains(err.Error(), c.want) || step.Problems(err)[0].Name != "docker" {
			t.Errorf("%s: %v", what, err)
		}
		out, err := host.Command{Args: access.Script(factsScript, dir)}.Run(t.Context())
		must.NoError(t, err)
		if strings.Contains(string(out), "docker yes") {
			t.Errorf("%s: the machine has Docker:\n%s", what, out)
		}
	}
}

func TestProblemsOfAMachineWithoutDocker(t *testing.T) {
	dir := t.TempDir()
	must.Write(t, filepath.Join(dir, "docker.deb"), "")
	must.Write(t, filepath.Join(dir, "arm64", "docker.rpm"), "")
	for _, c := range []struct {
		source        DockerSource
		manager, arch string
		want          string
	}{
		{DockerSource{}, "apt-get", "amd64", "add --install-docker"},
		{DockerSource{Repositories: true}, "", "amd64", "neither Docker nor apt-get"},
		{DockerSource{Repositories: true}, "apk", "amd64", ""},
		{DockerSource{Packages: dir}, "apt-get", "amd64", ""},
		{DockerSource{Packages: dir}, "dnf", "amd64", "no files *.rpm"},
		{DockerSource{Packages: dir}, "dnf", "arm64", ""},
		{DockerSource{Packages: dir}, "apt-get", "arm64", "no files *.deb"},
		{DockerSource{Packages: dir + "/none"}, "apt-get", "amd64", "no such file"},
	} {
		err := c.source.problem(Machine{}, Facts{PackageManager: c.manager, Arch: c.arch})
		if (err == nil) != (c.want == "") {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error()+step.Problems(err)[0].Remedy, c.want) {
			t.Errorf("%+v: %v, want %q", c, err, c.want)
		}
	}
}
