package kubeconfig

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const someones = "# mine\napiVersion: v1\nkind: Config\ncurrent-context: work\ncontexts:\n- {name: work, context: " +
	"{cluster: work, user: me}}\n"

func merging(t *testing.T, before string) (files, string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	if before != "" {
		must.Write(t, path, before)
	}
	f := files{session.Selection{Name: "k", CacheDir: filepath.Join(dir, "cache")}}
	own := api.NewConfig()
	own.Clusters["kubernetes"] = &api.Cluster{Server: "https://10.192.0.2:6443"}
	own.AuthInfos["admin"] = &api.AuthInfo{Username: "admin"}
	must.NoError(t, f.merge(path, own))
	config, err := clientcmd.LoadFromFile(path)
	must.NoError(t, err)
	if config.CurrentContext != "kube-bootstrap-k" || config.Clusters["kube-bootstrap-k"].Server == "" {
		t.Errorf("merged: %+v", config)
	}
	return f, path
}

// same fails unless the kubeconfig has the content of the user's.
func same(t *testing.T, path string) {
	t.Helper()
	want, err := clientcmd.Load([]byte(someones))
	must.NoError(t, err)
	got, err := clientcmd.LoadFromFile(path)
	must.NoError(t, err)
	for _, c := range got.Contexts {
		c.LocationOfOrigin = ""
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is now %+v", got)
	}
}

func TestUnmergeRestoresTheContext(t *testing.T) {
	f, path := merging(t, someones)
	for range 2 { // the second call changes nothing
		must.NoError(t, Unmerge(t.Context(), f.Selection))
		same(t, path)
	}
}

func TestUnmergeRemovesAFileThatMergeCreated(t *testing.T) {
	f, path := merging(t, "")
	must.NoError(t, Unmerge(t.Context(), f.Selection))
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestUnmergeKeepsEntriesOfTheUser(t *testing.T) {
	f, path := merging(t, someones)
	config, err := clientcmd.LoadFromFile(path)
	must.NoError(t, err)
	config.Clusters["another"] = &api.Cluster{Server: "https://192.0.2.1"}
	must.NoError(t, clientcmd.WriteToFile(*config, path))
	must.NoError(t, Unmerge(t.Context(), f.Selection))
	if config, err = clientcmd.LoadFromFile(path); err != nil {
		t.Fatal(err)
	}
	_, ours := config.Clusters["kube-bootstrap-k"]
	if _, theirs := config.Clusters["another"]; ours || !theirs || config.CurrentContext != "work" ||
		config.Contexts["work"] == nil {
		t.Errorf("left: %+v", config)
	}
}

func TestAKubeconfigThatIsHeldIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	second := false
	err := locked(ctx, path, func() error {
		return locked(ctx, path, func() error { second = true; return nil })
	})
	if problems := step.Problems(err); second || len(problems) != 1 || problems[0].Name != "kubeconfig-locked" {
		t.Errorf("got %v, second %v", err, second)
	}
	if _, err := os.Stat(path + ".lock"); !os.IsNotExist(err) {
		t.Error("the lock was left")
	}
}

func TestTheLockOfAKilledProgramIsTakenOver(t *testing.T) {
	path := must.Write(t, filepath.Join(t.TempDir(), "config.lock"), "")
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		must.NoError(t, locked(t.Context(), strings.TrimSuffix(path, ".lock"), func() error { return nil }))
		if took := time.Since(begun); took < abandoned || took > 2*abandoned {
			t.Errorf("taken over after %s", took)
		}
	})
}

// TestADirectoryThatCannotBeWritten: another try would fail too. Root may write into any
// directory, so the directory is missing.
func TestADirectoryThatCannotBeWritten(t *testing.T) {
	err := locked(t.Context(), filepath.Join(t.TempDir(), "none", "config"), func() error { return nil })
	if !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "open ") { // not the error of a wait
		t.Error(err)
	}
}

func TestAMergedKubeconfigIsRenewed(t *testing.T) {
	other := api.NewConfig()
	other.Clusters["kubernetes"] = &api.Cluster{
		Server: "https://10.192.0.2:6443", CertificateAuthorityData: []byte("another"),
	}
	other.AuthInfos["admin"] = &api.AuthInfo{Username: "another"}
	f, path := merging(t, someones)
	note, err := f.merged()
	if err != nil || note == nil {
		t.Fatal(note, err)
	}
	must.NoError(t, f.renew(note.Path, other))
	config, err := clientcmd.LoadFromFile(path)
	if err != nil || string(config.Clusters["kube-bootstrap-k"].CertificateAuthorityData) != "another" ||
		config.AuthInfos["kube-bootstrap-k"].Username != "another" {
		t.Errorf("renewed: %+v, %v", config, err)
	}
	must.NoError(t, Unmerge(t.Context(), f.Selection))
	same(t, path)
}

func TestAContextThatTheUserRemovedStaysRemoved(t *testing.T) {
	f, path := merging(t, someones)
	must.Write(t, path, someones)
	note, err := f.merged()
	must.NoError(t, err)
	must.NoError(t, f.renew(note.Path, api.NewConfig()))
	if got, err := os.ReadFile(path); err != nil || string(got) != someones {
		t.Errorf("it is now %q, %v", got, err)
	}
}
