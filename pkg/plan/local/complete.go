package local

import (
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// CompleteFile exists if the last run has applied all steps. Without it the
// agent repairs nothing, because a run is in progress or was interrupted.
const CompleteFile = host.StateDir + "/complete"

// CompleteMark is that file.
var CompleteMark = host.File{Path: CompleteFile, Data: []byte("The last run applied all steps. The agent repairs this host.\n")}

// Complete reports whether the last run has applied all steps.
func Complete(files host.Files) bool { return files.Exists(CompleteFile) }

// Suspend stops repairs by the agent until a run of master or worker
// succeeds.
func (h *Host) Suspend() error { return h.Files.Remove(CompleteFile) }
