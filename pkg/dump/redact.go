package dump

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

const removed = "(removed)"

const (
	// secretWords are the ends of the names of secrets.
	secretWords = `(?:pass(?:word|wd|phrase)?|[-_]pwd|secret|token|credentials?|registry[-_]auth|api[-_]?key|` +
		`(?:private|certificate|access|account|secret|client|encryption|signing|session|shared)[-_]?key(?:[-_]?(?:id|data|base))?)`
	// anyValue matches a value: in escaped quotes, because logs quote JSON, in quotes,
	// without, or in quotes that the end of the line has cut.
	anyValue = `(\\+"[^"\\\n]*\\+"|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(?:[^\s"',}\\]|\\[^"'\s])+|["'][^"'\n]*)`
)

var (
	secretName = regexp.MustCompile(`(?i)(?:` + secretWords + `|^_?auth)$`)
	// opening is the quote with which a value begins.
	opening = regexp.MustCompile(`^\\*["']`)
	// assigned are the names of secrets, the separators and the values.
	assigned = []*regexp.Regexp{
		regexp.MustCompile(`(?i)(--[a-z0-9-]*` + secretWords + `(?:=|\\*["']?,?[ \t]+|\\*["'],))` + anyValue),
		regexp.MustCompile(`(?i)((?:` + secretWords + `|(?:^|[^a-z0-9_.-])_?auth)\\*["']?[ \t]*[:=][ \t]*)` + anyValue),
	}
	assignedHints = []string{"pass", "pwd", "secret", "token", "credential", "auth", "key"}
)

// namesSecret reports whether a field, a variable or an option is named like a secret.
func namesSecret(name string) bool { return secretName.MatchString(strings.TrimLeft(name, "-")) }

// keys match private keys, which have several lines.
var keys = []*regexp.Regexp{
	regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`([A-Za-z0-9+/=]{16,}\s+)*-----END [A-Z ]*PRIVATE KEY-----`), // a log begins within the key
}

var clouds = []string{"gh", "github_pat_", "glpat-", "dckr_", "npm_", "sk-", "aiza", "akia", "asia"}

// secrets are values that are recognized without a name. Only lines that contain one
// of the hints, in lower case, are searched: most lines of a log contain none.
var secrets = []struct {
	hints   []string
	pattern *regexp.Regexp
	becomes string
}{
	// PEM in base64, except certificates
	{[]string{"ls0tls1crudjtib"}, regexp.MustCompile(`LS0tLS1CRUdJTiB[^D][A-Za-z0-9+/=]*`), removed},
	// a bootstrap token
	{[]string{"."}, regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`), removed},
	// a JSON web token
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`), removed},
	// of registries and clouds
	{clouds, regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|dckr_(pat|oat)_|npm_|sk-|AIza|AKIA|ASIA)[A-Za-z0-9_-]{16,}`), removed},
	// of a browser
	{[]string{"cookie"}, regexp.MustCompile(`(?i)\b((?:set-)?cookie\\*["']?[ \t]*[:=][ \t]*\\*["']?)[^"'\n]+`),
		"${1}" + removed},
	// of a signed URL
	{[]string{"sig=", "signature="}, regexp.MustCompile(`(?i)([?&;](?:[a-z-]*signature|sig)=)[^&;\s"']+`),
		"${1}" + removed},
	// of curl
	{[]string{"-u", "--user"},
		regexp.MustCompile(`(\s(?:-u|--user)(?:[ \t]+|=)?["']?)[^\s:"']*[A-Za-z][^\s:"']*:[^\s"']+`), "${1}" + removed},
	// of a header
	{[]string{"basic", "bearer"}, regexp.MustCompile(`(?i)\b(Basic|Bearer)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 " + removed},
	// of a URL
	{[]string{"://"}, regexp.MustCompile(`([a-z][a-z0-9+.-]*://)[^\s/@:]*:[^\s/@]+@`), "${1}" + removed + "@"},
	// of a connection string
	{[]string{";"}, regexp.MustCompile(`(?i)(;[ \t]*[a-z ]*(key|password|pwd)=)[^;\s"']+`), "${1}" + removed},
	// a certificate key; also the ID of a container
	{nil, regexp.MustCompile(`(^|[^:0-9a-f])([0-9a-f]{12})[0-9a-f]{52}\b`), "${1}${2}" + "(shortened)"},
}

// Redact returns a text without what looks like a secret.
func Redact(text []byte) []byte {
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		for _, key := range keys {
			text = key.ReplaceAll(text, []byte(removed))
		}
	}
	clean := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		clean = append(clean, redactLine(line)...)
	}
	return clean
}

func redactLine(line []byte) []byte {
	lower := bytes.ToLower(line)
	contains := func(hint string) bool { return bytes.Contains(lower, []byte(hint)) }
	for _, s := range secrets {
		if s.hints == nil || slices.ContainsFunc(s.hints, contains) {
			line = s.pattern.ReplaceAll(line, []byte(s.becomes))
		}
	}
	if !slices.ContainsFunc(assignedHints, contains) {
		return line
	}
	for _, pattern := range assigned {
		line = pattern.ReplaceAllFunc(line, func(found []byte) []byte {
			parts := pattern.FindSubmatch(found)
			quote := opening.Find(parts[2])
			return slices.Concat(parts[1], quote, []byte(removed), quote)
		})
	}
	return line
}

// processes lists the processes, with the program as column 5. BusyBox has no -e.
const processes = `ps -eo pid,ppid,etime,rss,comm,args 2>/dev/null || ps -o pid,ppid,etime,rss,comm,args`

var (
	process = regexp.MustCompile(`(?m)^((?:[ \t]*\S+){4}[ \t]+(\S+)).*$`)
	// program matches the programs of a cluster and the title of the column.
	program = regexp.MustCompile(`^(COMMAND|kube-bootstrap|kubelet|kube-(apiserver|controller|scheduler|proxy)|etcd|flanneld|coredns|dockerd|containerd|containerd-shim)$`)
)

// redactProcesses removes the arguments of other programs, which may be passwords.
func redactProcesses(list []byte) []byte {
	return process.ReplaceAllFunc(list, func(line []byte) []byte {
		parts := process.FindSubmatch(line)
		if program.Match(parts[2]) {
			return line
		}
		return parts[1]
	})
}
