package localcluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines"
)

func TestAConcurrencyBelowOneIsAnErrorOfUse(t *testing.T) {
	for value, want := range map[int]string{
		-1: "--concurrency -1: must be at least 1; omit it for 30",
		0:  "--concurrency 0: must be at least 1; omit it for 30",
		1:  "", 30: "",
	} {
		err := machineFlags{concurrency: value}.check()
		if got := text(err); got != want {
			t.Errorf("%d: %q, want %q", value, got, want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFlagsOfMachinesAreRefusedForContainers(t *testing.T) {
	for _, flag := range []string{"--dry-run", "--prune", "-o=json"} {
		c := &cobra.Command{}
		addMachineFlags(c).addPlanFlags(c)
		if err := onlyMachines(c); err != nil {
			t.Errorf("without %s: %v", flag, err)
		}
		if err := c.ParseFlags([]string{flag}); err != nil {
			t.Fatal(err)
		}
		if err := onlyMachines(c); !strings.HasSuffix(text(err), "is only for clusters whose nodes are machines") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestANodeThatIsNotInTheFileHasANextStep(t *testing.T) {
	for pruned, want := range map[bool]string{false: "remove it with --prune", true: "turndown` on its machine"} {
		var out, errs bytes.Buffer
		con := &console.Console{Out: &out, Err: &errs}
		result := machines.Result{Absent: []string{"b"}, Nodes: nil}
		if err := printResult(con, machines.Options{Prune: pruned}, result); err != nil || out.Len() > 0 {
			t.Errorf("a cluster that gave no answer: %q, %v", out.String(), err)
		}
		if got := absentHint("b", pruned); !strings.HasSuffix(strings.TrimRight(got, "\n"), want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAReportOfAMachineNamesWhatItHasNot(t *testing.T) {
	var out bytes.Buffer
	reportOf("board", machines.Facts{HostName: "board", Arch: "arm64", Free: 5 << 20}).print(&out)
	for _, want := range []string{"architecture\tarm64", "role\tnone", "free space in MiB\t5", "Docker\tfalse"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if err := noDockerEnv("board"); !strings.Contains(exit.Firm(err).Error(), "node ssh board docker") {
		t.Errorf("%v", err)
	}
}
