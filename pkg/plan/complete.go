package plan

import "github.com/kube-bootstrap/kube-bootstrap/pkg/host"

// completeFile says that the last run has applied all steps. Without it the
// agent repairs nothing: the host is being made, changed or taken back, or such
// a run was interrupted.
const completeFile = host.StateDir + "/complete"

var completeMark = host.File{Path: completeFile, Data: []byte("The last run applied all steps. The agent repairs this host.\n")}

func complete(files host.Files) bool { return files.Exists(completeFile) }

// Suspend keeps the agent from repairing this host until a run of master or
// worker succeeds.
func (h *Host) Suspend() error { return h.Files.Remove(completeFile) }
