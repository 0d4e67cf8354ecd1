package etcd

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	// DataDir is the data directory of etcd on a host.
	DataDir = host.StateDir + "/etcd"
	// startedFile contains the version of the newest etcd that has used the data
	// directory. It is written before that etcd is started, because an older etcd
	// cannot read the data afterwards.
	startedFile = host.StateDir + "/etcd-version"
	// joinedFile contains the value of --initial-cluster with which this member
	// joined. It exists once the member has been added.
	joinedFile = host.StateDir + "/etcd-cluster"
)

var (
	startedForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9A-Za-z.-]+$`)
	// clusterForm is the format of etcd's --initial-cluster.
	clusterForm = regexp.MustCompile(`^[^=,\s]+=https://[^=,\s]+(,[^=,\s]+=https://[^=,\s]+)*$`)
)

// HasData reports whether a member has run on this host.
func HasData(files host.Files) bool { return files.Exists(DataDir + "/member") }

// Started returns the version in startedFile, or "".
func Started(files host.Files) (string, error) { return readText(files, startedFile, startedForm) }

// joined returns the content of joinedFile, or "".
func joined(files host.Files) (string, error) { return readText(files, joinedFile, clusterForm) }

// readText returns the content of a file, or "" if the file is missing or
// damaged: the next start writes it again.
func readText(files host.Files, path string, form *regexp.Regexp) (string, error) {
	data, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text := strings.TrimSpace(string(data))
	if !form.MatchString(text) {
		text = ""
	}
	return text, err
}

// noteVersion records the version of an etcd before it starts.
func noteVersion(files host.Files, version string) error {
	newest, err := Started(files)
	if err != nil || newest == version || newest != "" && catalog.CheckEtcdChange(newest, version) != nil {
		return err
	}
	return files.Write(startedFile, []byte(version+"\n"), 0o600)
}

// removeData removes the data and the records of the member of this host.
func removeData(files host.Files) error {
	return errors.Join(files.RemoveAll(DataDir), files.Remove(joinedFile), files.Remove(startedFile))
}
