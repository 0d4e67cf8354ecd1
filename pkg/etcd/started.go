package etcd

import (
	"errors"
	"io/fs"
	"regexp"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// startedFile contains the version of the newest etcd that has used the data
// directory. It is written before that etcd is started, because an older etcd
// cannot read the data afterwards.
const startedFile = host.StateDir + "/etcd-version"

// Started returns the version in startedFile, or "".
func Started(files host.Files) (string, error) {
	data, err := files.Read(startedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	started := strings.TrimSpace(string(data))
	if !startedForm.MatchString(started) {
		started = "" // damaged: the next start writes it again
	}
	return started, err
}

var startedForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9A-Za-z.-]+$`)

func (m Member) noteVersion() error {
	newest, err := Started(m.Files)
	if err != nil || newest == m.Version || newest != "" && catalog.CheckEtcdChange(newest, m.Version) != nil {
		return err
	}
	return m.Files.Write(startedFile, []byte(m.Version+"\n"), 0o600)
}

// removeData removes the data and the records of this member.
func (m Member) removeData() error {
	return errors.Join(m.Files.RemoveAll(DataDir), m.Files.Remove(joinedFile), m.Files.Remove(startedFile))
}
