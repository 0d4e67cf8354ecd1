package reference

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const head = "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\n"

// TestSchema checks files with the validator that the API server uses for
// custom resources.
func TestSchema(t *testing.T) {
	data, err := Schema()
	must.NoError(t, err)
	var s spec.Schema
	must.NoError(t, json.Unmarshal(data, &s))
	validator := validate.NewSchemaValidator(&s, nil, "", strfmt.Default)
	type fileCase struct{ file, wrong string }
	cases := []fileCase{
		{string(Template()), ""},
		{head + "kubernetesVersion: 1.36\ntimeoutForServices: 20\naddons: [dashboard]\nworkers: 3\nregistry: " +
			"{address: r.example.com, insecure: true}\n", ""},
		{head + "nodeLabels: {disk: ssd}\nkubeletConfig: {maxPods: 50}\nnodes: [{role: worker, count: 2, cpus: 1.5}]\n",
			""},
		{head + "tlsSANs: k8s.example.com\nregistry:\nnodes:\nbundle:\n", ""},
		{"kind: Cluster\n", "apiVersion"},
		{head + "flanelBackend: vxlan\n", "flanelBackend"},
		{head + "flannelBackend: pigeon\n", "flannelBackend"},
		{head + "workers: many\n", "workers"},
		{head + "registry: {url: r}\n", "url"},
		{head + "nodes: [{role: king}]\n", "role"},
		{head + "token: abcdef.0123456789abcdef\n", "token"},
	}
	for _, fenced := range strings.Split(Markdown(), "```yaml\n")[1:] {
		example, _, _ := strings.Cut(fenced, "```")
		cases = append(cases, fileCase{example, ""})
	}
	for _, c := range cases {
		var value any
		must.NoError(t, yaml.Unmarshal([]byte(c.file), &value))
		err := validator.Validate(value).AsError()
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s\n%v, want %q", c.file, err, c.wrong)
		}
	}
}

func TestTemplateIsValid(t *testing.T) {
	path := must.Write(t, filepath.Join(t.TempDir(), "kb.yaml"), Template())
	cfg, _, err := source.Load(path, source.HostEnv(func(string) string { return "" }), nil)
	if err != nil || !reflect.DeepEqual(cfg, config.Default()) {
		t.Errorf("%v\n%s", err, Template())
	}
}

func TestExplain(t *testing.T) {
	for name, want := range map[string]string{
		"flannelBackend": "flannelBackend", "flannel-backend": "flannelBackend", "FLANNEL_BACKEND": "flannelBackend",
		"registry.ca": "registry.ca",
	} {
		all, err := Explain(name)
		if err != nil || len(all) != 1 || all[0].Field != want {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
	if all, err := Explain("registry"); err != nil || len(all) != 10 {
		t.Errorf("registry: %v, %v", all, err)
	}
	if _, err := Explain("flanelBackend"); err == nil ||
		!strings.Contains(err.Error(), "did you mean flannelBackend?") {
		t.Errorf("%v", err)
	}
}
