package step

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestAnEventSurvivesTheWire(t *testing.T) {
	sent := Event{At: time.Unix(1, 5).UTC(), Stage: 2, Stages: 5, Step: "worker-1: start etcd", Kind: Failed, Bytes: 3, Total: 4, Diff: Diff{"x"}, Err: errors.New("no room")}
	line, err := json.Marshal(sent)
	must.NoError(t, err)
	if !strings.Contains(string(line), `"host":"worker-1"`) {
		t.Errorf("no host: %s", line)
	}
	var got Event
	must.NoError(t, json.Unmarshal(line, &got))
	if got.Err == nil || got.Err.Error() != "no room" {
		t.Errorf("the error became %v", got.Err)
	}
	if len(Problems(got.Err)) > 0 {
		t.Errorf("problems out of nothing: %v", Problems(got.Err))
	}
	got.Err, sent.Err = nil, nil
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v became %+v", sent, got)
	}
}

func TestProblemsSurviveTheWire(t *testing.T) {
	problems := []*Problem{{Name: "swap", Text: "swap is on", Remedy: "turn it off"}, {Name: "ports", Text: "6443 is taken", Firm: true}}
	line, err := json.Marshal(Event{Kind: Failed, Err: fmt.Errorf("preflight: %w", errors.Join(problems[0], problems[1]))})
	must.NoError(t, err)
	var got Event
	must.NoError(t, json.Unmarshal(line, &got))
	if !reflect.DeepEqual(Problems(got.Err), problems) {
		t.Errorf("%s became %v", line, Problems(got.Err))
	}
}
