package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const (
	dir    = "/mnt/backups"
	bucket = "s3://backups/lab"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func every(d time.Duration) Schedule {
	return Schedule{Every: metav1.Duration{Duration: d}, Keep: 3, To: dir, Since: noon, Cluster: "a"}
}

// made returns a backup of a host, a number of hours after noon.
func made(host string, hours int, to string) Backup {
	at := noon.Add(time.Duration(hours) * time.Hour)
	return Backup{
		Begun: Begun{To: to, Name: backup.Name(host, at), Host: host}, Size: 7, Version: "v" + host, Created: at,
	}
}

func files(backups ...Backup) (all []backup.File) {
	for _, b := range backups {
		all = append(all, backup.File{Name: b.Name, Size: b.Size, Version: b.Version})
	}
	return all
}

func names(all []Begun) (names []string) {
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

func TestTheNextBackupIsDueAfterTheLastGoodOne(t *testing.T) {
	s := every(6 * time.Hour)
	failing := State{Backups: []Backup{made("a", 1, dir)}, Failure: &Failure{To: dir, At: noon.Add(7 * time.Hour)}}
	for name, c := range map[string]struct {
		state State
		want  time.Duration // after noon
	}{
		"the first one at once":        {State{}, 0},
		"after the last one":           {State{Backups: []Backup{made("a", 1, dir), made("b", 2, dir)}}, 8 * time.Hour},
		"another place at once":        {State{Backups: []Backup{made("a", 1, bucket)}}, 0},
		"soon after a failure":         {failing, 7*time.Hour + retryAfter},
		"a failure in another place":   {State{Failure: &Failure{To: bucket, At: noon.Add(time.Hour)}}, 0},
		"a failure before a new order": {State{Failure: &Failure{To: dir, At: noon.Add(-time.Minute)}}, 0},
	} {
		if got := s.Due(c.state).Sub(noon); got != c.want {
			t.Errorf("%s: due after %s, not %s", name, got, c.want)
		}
	}
}

func TestJitterIsAPartOfTheInterval(t *testing.T) {
	for range 100 {
		if got := every(time.Minute).Jitter(); got < 0 || got >= 6*time.Second {
			t.Fatalf("%s of a minute", got)
		}
		if got := every(240 * time.Hour).Jitter(); got >= longestJitter {
			t.Fatalf("%s of ten days", got)
		}
	}
}

func TestRetentionKeepsTheNewestGoodBackups(t *testing.T) {
	four := []Backup{made("a", 1, dir), made("a", 2, dir), made("a", 3, dir), made("a", 4, dir)}
	changed := files(four...)
	changed[3].Size = 0
	other := made("a", 4, bucket)
	left := Begun{To: dir, Name: "a-left.backup", Host: "a"}
	for name, c := range map[string]struct {
		state  State
		files  []backup.File
		keep   int
		remove []string
		gone   []string
	}{
		"the oldest goes":               {State{Backups: four}, files(four...), 3, []string{four[0].Name}, nil},
		"the last good one stays":       {State{Backups: four[:1]}, files(four[0]), 1, nil, nil},
		"an empty one does not count":   {State{Backups: four}, changed, 3, nil, []string{four[3].Name}},
		"a missing one does not count":  {State{Backups: four}, files(four[:3]...), 3, nil, []string{four[3].Name}},
		"files of others stay":          {State{}, files(four...), 1, nil, nil},
		"another place is not touched":  {State{Backups: []Backup{other}}, files(four...), 1, nil, nil},
		"what a killed run has left":    {State{Begun: []Begun{left}}, nil, 3, []string{left.Name}, nil},
		"none of another control plane": {State{Backups: []Backup{made("b", 1, dir)}}, nil, 1, nil, nil},
	} {
		got := c.state.Retain(c.files, dir, "a", c.keep)
		if !slices.Equal(names(got.Remove), c.remove) || !slices.Equal(names(got.Gone), c.gone) {
			t.Errorf("%s: remove %v, gone %v", name, names(got.Remove), names(got.Gone))
		}
	}
}

func TestTheStateStaysSmall(t *testing.T) {
	s := State{Failure: &Failure{}}
	for i := range 3 * mostKept {
		b := made("a", i, bucket)
		s.Begin(b.Begun)
		s.Complete(b)
		s.Begin(Begun{To: bucket, Name: fmt.Sprint(i), Host: "a"})
	}
	s.Forget(nil)
	if len(s.Begun) != mostBegun || len(s.Backups) != 2*mostKept || s.Failure != nil {
		t.Errorf("%d begun, %d good, %v", len(s.Begun), len(s.Backups), s.Failure)
	}
	last, _ := s.Last("")
	s.Forget([]Begun{last.Begun})
	if now, found := s.Last(bucket); !found || now.Begun == last.Begun {
		t.Errorf("the last one is %+v", now)
	}
}

func TestProblemsNameTheirRemedy(t *testing.T) {
	s3 := func(code string) error {
		return fmt.Errorf("write: %w", minio.ErrorResponse{Code: code, Message: code})
	}
	for name, errs := range map[string][]error{
		"backup-full":   {&fs.PathError{Err: syscall.ENOSPC}, syscall.EDQUOT, s3("QuotaExceeded")},
		"backup-denied": {fs.ErrPermission, s3("AccessDenied"), s3("SignatureDoesNotMatch")},
		"backup-clock":  {s3("RequestTimeTooSkewed")},
		"backup-place":  {fs.ErrNotExist, s3("NoSuchBucket")},
		"backup-failed": {errors.New("etcd is gone")},
	} {
		for _, err := range errs {
			if p := ProblemOf(err, dir); p.Name != name || p.Remedy == "" || !strings.Contains(p.Text, err.Error()) {
				t.Errorf("%v: %v", err, p)
			}
		}
	}
}

func TestStatusNamesWhatIsWrong(t *testing.T) {
	good := State{Backups: []Backup{made("a", 1, dir)}}
	failed := good
	failed.Failure = FailureOf(syscall.ENOSPC, "a", dir, noon)
	unpruned := good
	unpruned.Kept = FailureOf(fs.ErrPermission, "a", dir, noon)
	for name, c := range map[string]struct {
		state   State
		cluster string
		hours   int
		want    []string
	}{
		"nothing":                 {good, "a", 2, nil},
		"a failure":               {failed, "a", 2, []string{"backup-full"}},
		"old backups stay":        {unpruned, "a", 2, []string{"backup-denied"}},
		"no backup for two turns": {good, "a", 14, []string{"backup-overdue"}},
		"none since the order":    {State{}, "a", 13, []string{"backup-overdue"}},
		"a restored cluster":      {failed, "b", 20, []string{"backup-suspended"}},
	} {
		var got []string
		for _, p := range every(6*time.Hour).Problems(c.state, c.cluster, noon.Add(time.Duration(c.hours)*time.Hour)) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAScheduleIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Schedule){
		"--every":  func(s *Schedule) { s.Every.Duration = time.Second },
		"--keep 0": func(s *Schedule) { s.Keep = 0 },
		"--to":     func(s *Schedule) { s.To = "" },
		"absolute": func(s *Schedule) { s.To = "backups" },
		"endpoint": func(s *Schedule) { s.To = bucket },
	} {
		s := every(time.Hour)
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := every(time.Hour).Validate(); err != nil {
		t.Error(err)
	}
}

func TestARestoredClusterKeepsTheBackupThatItCameFrom(t *testing.T) {
	s := State{Backups: []Backup{made("a", 1, bucket)}}
	s.Begin(made("a", 2, bucket).Begun)
	data, err := json.Marshal(s)
	must.NoError(t, err)
	var restored State
	must.NoError(t, json.Unmarshal([]byte(Restored(string(data))), &restored))
	if _, found := restored.Last(bucket); !found || len(restored.Begun) > 0 {
		t.Errorf("restored: %+v", restored)
	}
	if got := Restored("damaged"); got != "{}" {
		t.Errorf("a damaged state becomes %s", got)
	}
}
