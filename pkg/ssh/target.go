package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// target is a server of SSH with everything that a connection to it needs, from the settings of a
// machine and from the files of OpenSSH.
type target struct {
	name         string // of the machine, or as the user wrote the hop
	host, user   string
	port         int
	keyFiles     []string // in the order in which they are offered; the named one is first
	usualFiles   bool     // no key file was named
	certificates []string
	onlyFiles    bool   // IdentitiesOnly: no other keys of the agent
	agent        string // socket of the agent; "" for none
	hostKeyAlias string
	jumps        []string // hosts on the way
}

// address is the address to connect to.
func (t target) address() string { return net.JoinHostPort(t.host, strconv.Itoa(t.port)) }

// knownAs is the name of the host in known_hosts, with a port.
func (t target) knownAs() string {
	if t.hostKeyAlias != "" {
		return net.JoinHostPort(t.hostKeyAlias, "22")
	}
	return t.address()
}

// files are the configuration of the user and of the system, in the order of their precedence.
type files struct {
	home    string
	configs []*ssh_config.Config
}

func readFiles(home string) (files, error) {
	f := files{home: home}
	var errs []error
	for _, path := range []string{filepath.Join(home, ".ssh/config"), "/etc/ssh/ssh_config"} {
		c, err := readConfig(path)
		if c != nil {
			f.configs = append(f.configs, c)
		}
		errs = append(errs, err)
	}
	return f, errors.Join(errs...)
}

func readConfig(path string) (*ssh_config.Config, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	c, err := ssh_config.Decode(file)
	if err != nil {
		return nil, &step.Problem{Name: "ssh-config", Text: fmt.Sprintf("%s: %v", path, err), Firm: true,
			Remedy: "correct the file; Match blocks are not supported"}
	}
	return c, nil
}

// get returns the first value of a keyword for a host.
func (f files) get(host, keyword string) string {
	return strings.Join(f.all(host, keyword)[:min(1, len(f.all(host, keyword)))], "")
}

// all returns the values of a keyword for a host. OpenSSH takes the values of all files.
func (f files) all(host, keyword string) (values []string) {
	for _, c := range f.configs {
		found, err := c.GetAll(host, keyword)
		if err == nil {
			values = append(values, found...)
		}
	}
	return values
}

// target returns the server with this address. The settings have precedence over the files.
func (f files) target(name, address string, s connection.SSH) (target, error) {
	if command := f.get(address, "ProxyCommand"); command != "" && command != none && s.ProxyJump == "" {
		return target{}, &step.Problem{Name: "ssh-config", Firm: true,
			Text: fmt.Sprintf("machine %s: ~/.ssh/config has a ProxyCommand for %s, which is not supported",
				name, address),
			Remedy: "use ProxyJump, or write ssh.proxyJump into the configuration file"}
	}
	port, _ := strconv.Atoi(f.get(address, "Port")) // 0 if it is not set
	t := target{
		name: name, host: cmp.Or(f.get(address, "HostName"), address), port: cmp.Or(s.Port, port, 22),
		user:         cmp.Or(s.User, f.get(address, "User"), localUser()),
		hostKeyAlias: f.get(address, "HostKeyAlias"),
		onlyFiles:    strings.EqualFold(f.get(address, "IdentitiesOnly"), "yes"),
		jumps:        hops(cmp.Or(s.ProxyJump, f.get(address, "ProxyJump"))),
	}
	t.host = f.expand(t.host, target{host: address, user: t.user, port: t.port})
	t.agent = f.agentOf(address, t)
	if s.IdentityFile != "" {
		t.keyFiles = []string{f.expand(s.IdentityFile, t)}
	}
	for _, path := range f.all(address, "IdentityFile") {
		t.keyFiles = append(t.keyFiles, f.expand(path, t))
	}
	if t.usualFiles = len(t.keyFiles) == 0; t.usualFiles {
		t.keyFiles = f.usualKeys()
	}
	for _, path := range f.all(address, "CertificateFile") {
		t.certificates = append(t.certificates, f.expand(path, t))
	}
	return t, nil
}

// none is the value of a keyword that turns it off.
const none = "none"

func hops(text string) []string {
	if text == "" || strings.EqualFold(text, none) {
		return nil
	}
	return strings.Split(strings.ReplaceAll(text, " ", ""), ",")
}

// hop returns a host on the way to others. Only the first of several takes its own ProxyJump.
func (f files) hop(text string, first bool) (target, error) {
	var s connection.SSH
	rest := text
	if at := strings.LastIndex(text, "@"); at >= 0 {
		s.User, rest = text[:at], text[at+1:]
	}
	host := rest
	if h, port, err := net.SplitHostPort(rest); err == nil {
		host = h
		if s.Port, err = strconv.Atoi(port); err != nil {
			return target{}, fmt.Errorf("hop %s: %q is no port", text, port)
		}
	}
	if !first {
		s.ProxyJump = none
	}
	return f.target(text, strings.Trim(host, "[]"), s)
}

// usualKeys are the names that ssh-keygen gives to keys.
func (f files) usualKeys() (paths []string) {
	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		paths = append(paths, filepath.Join(f.home, ".ssh", name))
	}
	return paths
}

func (f files) agentOf(host string, t target) string {
	socket := os.Getenv("SSH_AUTH_SOCK")
	switch given := f.get(host, "IdentityAgent"); {
	case given == "" || given == "SSH_AUTH_SOCK":
		return socket
	case strings.EqualFold(given, none):
		return ""
	case strings.HasPrefix(given, "$"):
		return os.Getenv(strings.Trim(given, "${}"))
	default:
		return f.expand(given, t)
	}
}

// expand replaces the tokens of OpenSSH and a leading ~.
func (f files) expand(text string, t target) string {
	text = strings.Trim(text, `"`)
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		text = filepath.Join(f.home, rest)
	}
	return strings.NewReplacer("%%", "%", "%d", f.home, "%h", t.host, "%r", t.user, "%u", localUser(),
		"%p", strconv.Itoa(t.port)).Replace(text)
}

func localUser() string {
	u, err := user.Current()
	if err != nil {
		return os.Getenv("USER")
	}
	return u.Username
}

// route describes a connection for people and identifies it: the server, and the hops to it.
func route(t target, via []string) string {
	text := t.user + "@" + t.address()
	if len(via) > 0 {
		text += " through " + strings.Join(slices.Clone(via), " and ")
	}
	return text
}
