package dump

import "regexp"

// processes lists the processes with the program in the fifth column. BusyBox has
// no -e.
const processes = `ps -eo pid,ppid,etime,rss,comm,args 2>/dev/null || ps -o pid,ppid,etime,rss,comm,args`

var (
	process = regexp.MustCompile(`(?m)^((?:[ \t]*\S+){4}[ \t]+(\S+)).*$`)
	// program matches the programs of a cluster and the title of the column.
	program = regexp.MustCompile(`^(COMMAND|kube-bootstrap|kubelet|kube-(apiserver|controller|scheduler|proxy)|etcd|flanneld|coredns|dockerd|containerd|containerd-shim)$`)
)

// redactProcesses removes the arguments of other programs, which may contain
// passwords.
func redactProcesses(list []byte) []byte {
	return process.ReplaceAllFunc(list, func(line []byte) []byte {
		parts := process.FindSubmatch(line)
		if program.Match(parts[2]) {
			return line
		}
		return parts[1]
	})
}
