package join

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"strings"
	"text/template"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// AdminGroup is the group of the admin's certificate, which is cluster-admin.
const AdminGroup = "kube-bootstrap:cluster-admins"

// AgentGroup is the group that the agents' certificates name.
const AgentGroup = "kube-bootstrap:agents"

// Names of what a joining host reads; see publish.yaml.
const (
	settingsName = "kube-bootstrap"
	settingsKey  = "settings.yaml"
	registryName = "kube-bootstrap-registry"
	registryKey  = "registry.json"
	etcdCAKey    = "etcd-ca.crt"
	verifyKey    = "verify-key.pub"
)

// Publisher is the side of the control plane: what it publishes for hosts that join.
type Publisher struct {
	API      kube.Connect              // a member of system:masters: it hands out cluster-admin
	Server   string                    // "https://127.0.0.1:6440": the API server as every host reaches it
	Settings []byte                    // of the whole cluster, YAML; Handover.Settings gives it back
	Read     func() (Published, error) // on use: an earlier step may write its files
}

// Published is what a Publisher reads from files.
type Published struct {
	ClusterCA []byte // PEM
	EtcdCA    []byte // PEM
	Registry  []byte // the settings of a private registry, of the caller; Handover.Registry returns them
	VerifyKey []byte // PEM of the public key of those who sign bundles; nil: none
}

// PublishID identifies Publisher.Publish, after which hosts can join.
const PublishID step.ID = "let-hosts-join"

// Publish is the step that lets hosts join: cluster-info, the join data, and who may read and request what. It
// goes away with the cluster.
func (p Publisher) Publish() step.Step {
	return kube.ApplyStep(PublishID, "let hosts join", p.API, p.objects)
}

//go:embed publish.yaml
var publishYAML string

var publishTemplate = template.Must(template.New("publish.yaml").Funcs(template.FuncMap{
	"base64": base64.StdEncoding.EncodeToString,
	"indent": func(by int, text []byte) string {
		return strings.ReplaceAll(strings.TrimRight(string(text), "\n"), "\n", "\n"+strings.Repeat(" ", by))
	},
}).Parse(publishYAML))

func (p Publisher) objects() ([]*kube.Object, error) {
	read, err := p.Read()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := p.clusterInfo(read.ClusterCA)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := publishTemplate.Execute(&out, map[string]any{
		"Workers":       workerGroup,
		"ControlPlanes": controlPlaneGroup,
		"Admins":        AdminGroup,
		"Agents":        AgentGroup,
		"ClusterInfo":   kubeconfig,
		"Settings":      p.Settings,
		"EtcdCA":        read.EtcdCA,
		"FlannelSigner": FlannelSigner,
		"Registry":      read.Registry,
		"VerifyKey":     read.VerifyKey,
		"ImagesPath":    imagesPath,
	}); err != nil {
		return nil, err
	}
	return kube.Objects(out.Bytes())
}

func (p Publisher) clusterInfo(ca []byte) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[""] = &clientcmdapi.Cluster{Server: p.Server, CertificateAuthorityData: ca}
	return clientcmd.Write(*config)
}
