package file

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// TestErrorsNameTheLineTheFieldAndTheRemedy: a user corrects the file without the documentation.
func TestErrorsNameTheLineTheFieldAndTheRemedy(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no header": {"workers: 1\n", ":1: apiVersion: missing; write \"apiVersion: kube-bootstrap.dev/v1alpha1\""},
		"another kind": {
			strings.Replace(head, "Cluster", "Clutser", 1), `:2: kind: "Clutser" is not known; write Cluster`,
		},
		"unknown field": {
			head + "flannelNetwrk: 10.7.0.0/16\n", ":3: flannelNetwrk: unknown field, did you mean flannelNetwork?",
		},
		"field twice": {head + "workers: 1\nworkers: 2\n", ":4: workers: already said on line 3"},
		"no block":    {head + "oidc: x\n", ":3: oidc: must be a block of fields"},
		"unknown in block": {
			head + "oidc: {clientId: x}\n", ":3: oidc.clientId: unknown field, did you mean oidc.clientID?",
		},
		"list for a value":  {head + "dnsDomain: [a]\n", ":3: dnsDomain: \"\": must be a single value"},
		"list of lists":     {head + "addons: [[a]]\n", ":3: addons: \"\": must be a list of names"},
		"no network":        {head + "flannelNetwork: 10.1\n", `:3: flannelNetwork: "10.1": `},
		"second document":   {head + "---\nworkers: 1\n", "a second document; put everything into one"},
		"no mapping":        {"- a\n", "line 1: must be fields with values"},
		"no YAML":           {"a: [\n", "not YAML: "},
		"nodes are no list": {head + "nodes: {role: worker}\n", ":3: nodes: must be a list"},
		"node is a word":    {head + "nodes: [worker]\n", ":3: nodes[0]: must be fields with values"},
		"node without role": {
			head + "nodes:\n- {count: 2}\n", ":4: nodes[0].role: missing; write control-plane or worker",
		},
		"unknown role": {
			head + "nodes:\n- {role: boss}\n", `:4: nodes[0].role: "boss": must be control-plane or worker`,
		},
		"no node": {
			head + "nodes:\n- {role: worker, count: 0}\n", `:4: nodes[0].count: "0": must be a whole number, 1 or more`,
		},
		"two images": {
			head + "nodes:\n- {role: worker, hostImage: docker-28.5, dockerVersion: 28.5}\n",
			":4: nodes[0].dockerVersion: hostImage says it already",
		},
		"unknown Docker": {
			head + "nodes:\n- {role: worker, dockerVersion: 1}\n", `:4: nodes[0].dockerVersion: "1": must be one of `,
		},
		"second node": {
			head + "nodes:\n- {role: worker}\n- {role: worker, nam: x}\n",
			":5: nodes[1].nam: unknown field, did you mean name?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, cfg := write(t, c.text), config.Default()
			err := Read(path, &cfg, config.Origins{})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), path) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAllErrorsOfAFileAreReported(t *testing.T) {
	cfg := config.Default()
	err := Read(write(t, "workers: many\nnodes: [{role: boss}]\nfoo: 1\n"), &cfg, config.Origins{})
	if err == nil || len(strings.Split(err.Error(), "\n")) != 5 { // and both lines of the header
		t.Errorf("got %v", err)
	}
}

func TestAMissingFileIsNamed(t *testing.T) {
	cfg, path := config.Default(), filepath.Join(t.TempDir(), "none.yaml")
	if err := Read(path, &cfg, config.Origins{}); err == nil || !strings.Contains(err.Error(),
		"read configuration: open "+path) {
		t.Errorf("got %v", err)
	}
}
