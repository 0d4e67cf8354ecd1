package step

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestAnEventSurvivesTheWire(t *testing.T) {
	sent := Event{At: time.Unix(1, 5).UTC(), Row: 2, Step: "start etcd", Kind: Failed, Bytes: 3, Total: 4, Diff: Diff{"x"}, Err: errors.New("no room")}
	line, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got Event
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatal(err)
	}
	if got.Err == nil || got.Err.Error() != "no room" {
		t.Errorf("the error became %v", got.Err)
	}
	got.Err, sent.Err = nil, nil
	if !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v became %+v", sent, got)
	}
}
