package dump

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// here runs scripts on this machine in which kube-bootstrap is echo.
func here() Target { return Here("/bin/echo") }

// contents returns the files below dir with their content, and fails if another user
// may read one.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		must.NoError(t, err)
		info, err := entry.Info()
		must.NoError(t, err)
		if info.Mode().Perm()&0o077 != 0 && path != dir {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if entry.IsDir() {
			return nil
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	}))
	return all
}

func TestCollect(t *testing.T) {
	dir, logs := t.TempDir(), t.TempDir()
	must.NoError(t, os.MkdirAll(filepath.Join(logs, "a"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(logs, "a", "0.log"), []byte("one password=hunter22\n"), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(logs, "b c"), []byte("two\n"), 0o600))
	failed, err := collect(t.Context(), here(), dir, []source{
		{file: "version.txt", run: `"$0" version`},
		{file: "nothing.txt", run: `true`},
		{file: "part.txt", run: `echo part; echo --password hunter22 >&2; echo second >&2; exit 3`},
		{file: "none.txt", run: `no-such-program`},
		{file: "logs/*", names: `echo a/0.log; echo 'b c'`, run: `cat "` + logs + `/$1"`},
		{file: "gone/*", names: `exit 4`, run: `true`},
		{file: "objects.yaml", run: `echo 'spec: {env: [{name: A, value: hunter22}]}'`,
			clean: redactObjects, only: objects},
		{file: "workloads.txt", run: `echo x`, only: workloads},
	})
	must.NoError(t, err)
	if want := []string{"gone/*", "none.txt", "part.txt"}; !slices.Equal(failed, want) {
		t.Errorf("failed: %q, want %q", failed, want)
	}
	got := contents(t, dir)
	errs := got[ErrorsFile]
	delete(got, ErrorsFile)
	for file, want := range map[string]string{
		"version.txt": "version\n", "part.txt": "part\n", "logs/a_0.log": "one password=(removed)\n",
		"logs/b c":     "two\n",
		"objects.yaml": "spec:\n  env:\n  - name: A\n    value: (removed)\n",
	} {
		if got[file] != want {
			t.Errorf("%s is %q, want %q", file, got[file], want)
		}
		delete(got, file)
	}
	if len(got) > 0 {
		t.Errorf("further files: %q", got)
	}
	for _, line := range []string{
		"part.txt: exit status 3: --password (removed) second\n", "none.txt: exit status 127: ",
		"gone/*: exit status 4\n",
	} {
		if !strings.Contains(errs, line) {
			t.Errorf("%q is not in\n%s", line, errs)
		}
	}
}

// A script that does not end takes its processes with it, and stops nobody else.
func TestALimit(t *testing.T) {
	dir := t.TempDir()
	h := here()
	h.limit = 300 * time.Millisecond
	began := time.Now()
	failed, err := collect(t.Context(), h, dir, []source{
		{file: "slow.txt", run: `echo begun; sleep 600 & sleep 600; echo over`},
		{file: "quick.txt", run: `echo ok`},
	})
	must.NoError(t, err)
	if took := time.Since(began); took > grace {
		t.Errorf("it took %s", took)
	}
	got := contents(t, dir)
	if !slices.Equal(failed, []string{"slow.txt"}) || got["slow.txt"] != "begun\n" || got["quick.txt"] != "ok\n" ||
		got[ErrorsFile] != "slow.txt: it did not end within 300ms\n" {
		t.Errorf("failed: %q, files: %q", failed, got)
	}
}

func TestAnInterruptLeavesWhatHasEnded(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for _, err := os.Stat(filepath.Join(dir, "quick.txt")); err != nil; _, err = os.Stat(filepath.Join(dir,
			"quick.txt")) {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	_, err := collect(ctx, here(), dir,
		[]source{{file: "quick.txt", run: `echo ok`}, {file: "slow.txt", run: `sleep 600`}})
	if got := contents(t, dir); !errors.Is(err, context.Canceled) || len(got) != 1 || got["quick.txt"] != "ok\n" {
		t.Errorf("%v, %q", err, got)
	}
}

// TestAHostNamesManyFiles: a node that somebody else controls must not fill the memory or the
// disk of the machine that collects the dump.
func TestAHostNamesManyFiles(t *testing.T) {
	dir := t.TempDir()
	h := here()
	h.Exec = func(_ context.Context, args []string, stdout, _ io.Writer) error {
		answer := "x\n"
		if strings.HasSuffix(args[2], "names") {
			answer = strings.Repeat("a\nb\n", maxNames)
		}
		_, err := io.WriteString(stdout, answer)
		return err
	}
	failed, err := collect(t.Context(), h, dir, []source{{file: "*.log", names: "names", run: "run"}})
	must.NoError(t, err)
	if errs := contents(t, dir)[ErrorsFile]; !slices.Equal(failed, []string{"*.log"}) ||
		!strings.Contains(errs, "*.log: more than 2000 files were found") {
		t.Errorf("%q: %s", failed, errs)
	}
	c := collection{written: maxDump - 1}
	if c.fits(2) || !c.fits(1) || c.fits(1) {
		t.Error("a dump has no limit")
	}
}

func TestADirectoryThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	must.NoError(t, os.WriteFile(dir, nil, 0o600))
	if _, err := collect(t.Context(), here(), dir, []source{{file: "a.txt", run: `echo a`}}); err == nil {
		t.Error("no error")
	}
}

func TestOutputIsCut(t *testing.T) {
	o := &output{most: 4}
	for _, text := range []string{"abc", "def"} {
		if n, err := io.WriteString(o, text); n != 3 || err != nil {
			t.Error(n, err)
		}
	}
	if text, whole := o.taken(); string(text) != "abcd" || whole {
		t.Errorf("%q, %v", text, whole)
	}
}

// TestScripts has the shell read each script of the table, with the words that Go
// puts into it.
func TestScripts(t *testing.T) {
	files := map[string]bool{}
	for _, s := range sources {
		for _, script := range []string{s.names, s.run} {
			if _, err := (host.Command{Args: []string{"/bin/sh", "-n", "-c", prelude + script}}).
				Run(t.Context()); err != nil {
				t.Errorf("%s: %v", s.file, err)
			}
		}
		if strings.Contains(s.file, "*") != (s.names != "") {
			t.Errorf("%s: names %q", s.file, s.names)
		}
		if files[s.file] && s.only == nil {
			t.Errorf("two sources have the file %s", s.file)
		}
		files[s.file] = true
	}
}

// TestProcesses runs a script of the table. Only the arguments of programs of a
// cluster remain.
func TestProcesses(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	began := make(chan struct{})
	for _, name := range []string{"kubelet", "user"} {
		path := filepath.Join(t.TempDir(), name)
		must.NoError(t, os.Symlink("/bin/sh", path))
		go func() {
			began <- struct{}{}
			_, _ = host.Command{Args: []string{path, "-c", ": 'of " + name + "'; read line"},
				Stdin: silent{ctx}}.Run(ctx)
		}()
		<-began
	}
	var got string
	for end := time.Now().Add(10 * time.Second); !strings.Contains(got, " user\n") && time.Now().Before(end); {
		failed, err := collect(ctx, here(), dir, []source{{
			file: "processes.txt", run: processes, clean: redactProcesses,
		}})
		must.NoError(t, err)
		got = contents(t, dir)["processes.txt"]
		if len(failed) > 0 {
			t.Fatal(failed)
		}
	}
	for text, want := range map[string]bool{"COMMAND": true, " user\n": true, "of kubelet": true, "of user": false} {
		if strings.Contains(got, text) != want {
			t.Errorf("%q is in it: %v\n%s", text, !want, got)
		}
	}
}

// silent is a standard input on which nothing comes.
type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, io.EOF }

// TestADumpGetsANewDirectory: an existing one may contain links of another user.
func TestADumpGetsANewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "report")
	must.NoError(t, MakeDir(dir))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	link := dir + "-link"
	must.NoError(t, os.Symlink(t.TempDir(), link))
	for _, existing := range []string{dir, dir + "/", link} {
		if err := MakeDir(existing); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", existing, err)
		}
	}
}
