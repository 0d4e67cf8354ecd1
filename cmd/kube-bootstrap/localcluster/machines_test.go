package localcluster

import (
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
	for _, flag := range []string{"--dry-run", "--prune", "-o=json", "--concurrency=2", "--install-docker"} {
		c := &cobra.Command{}
		addMachineFlags(&console.Console{}, c).addPlanFlags(c)
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

func TestDockerEnvOfAMachineNamesAnotherWay(t *testing.T) {
	if err := machines.NoDockerEnv("board"); !strings.Contains(exit.Firm(err).Error(), "node ssh board docker") {
		t.Errorf("%v", err)
	}
}
