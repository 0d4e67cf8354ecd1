package plan

import "github.com/kube-bootstrap/kube-bootstrap/pkg/host"

// completeFile exists if the last run has applied all steps. Without it the
// agent repairs nothing, because a run is in progress or was interrupted.
const completeFile = host.StateDir + "/complete"

var completeMark = host.File{Path: completeFile, Data: []byte("The last run applied all steps. The agent repairs this host.\n")}

func complete(files host.Files) bool { return files.Exists(completeFile) }

// Suspend stops repairs by the agent until a run of master or worker
// succeeds.
func (h *Host) Suspend() error { return h.Files.Remove(completeFile) }
