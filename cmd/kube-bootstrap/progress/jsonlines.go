package progress

import (
	"encoding/json"
	"io"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// jsonLines writes each event as one line.
type jsonLines struct{ out *json.Encoder }

func newJSONLines(out io.Writer) jsonLines { return jsonLines{json.NewEncoder(out)} }

// A closed stderr must not stop the work.
func (r jsonLines) Event(e step.Event) { _ = r.out.Encode(e) }

func (r jsonLines) Close() {}

// result is the last line of JSON progress.
type result struct {
	At       time.Time       `json:"at"`
	Kind     step.Kind       `json:"kind"`
	Code     int             `json:"code"`
	Error    string          `json:"error,omitempty"`
	Problems []*step.Problem `json:"problems,omitempty"`
}

// WriteResult writes the exit code of a run, and the error that ended it, as the last
// line of JSON progress.
func WriteResult(out io.Writer, code int, err error) {
	line := result{At: time.Now(), Kind: step.Result, Code: code}
	if err != nil {
		line.Error, line.Problems = err.Error(), step.Problems(err)
	}
	_ = json.NewEncoder(out).Encode(line)
}
