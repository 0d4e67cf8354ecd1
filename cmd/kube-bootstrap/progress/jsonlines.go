package progress

import (
	"encoding/json"
	"io"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// jsonLines writes events as they are, one a line.
type jsonLines struct{ out *json.Encoder }

func newJSONLines(out io.Writer) jsonLines { return jsonLines{json.NewEncoder(out)} }

// A closed stderr must not stop the work.
func (r jsonLines) Event(e step.Event) { _ = r.out.Encode(e) }

func (r jsonLines) Close() {}
