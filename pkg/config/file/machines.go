package file

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// nodeSSH is the field of an entry of nodes with the settings of the connection to a machine. Its
// fields are those of the block of the same name.
const nodeSSH = "ssh"

func (d decoder) nodeSSH(n *config.NodeEntry, val *yaml.Node, path string, origins config.Origins) error {
	_, err := d.fields(val, path+".", func(key, val *yaml.Node) error {
		name := path + "." + key.Value
		if !slices.Contains(connection.NodeFields, key.Value) {
			if !d.strict {
				return nil
			}
			return d.wrong(key, name, "unknown field"+spelling.DidYouMean(key.Value, connection.NodeFields))
		}
		s, _ := config.Find(nodeSSH + "." + key.Value)
		if err := d.set(&n.Settings, s, name, val, origins); err != nil {
			return err
		}
		return d.must(val, name, s.Get(n.Settings), s.Must(n.Settings))
	})
	return err
}

// sshWords returns the names and values of the connection to a machine, without empty values.
func sshWords(n config.NodeEntry) (all [][2]string) {
	for _, name := range connection.NodeFields {
		field := fmt.Sprintf("%s.%s", nodeSSH, name)
		s, _ := config.Find(field)
		if value := s.Get(n.Settings); value != "" {
			all = append(all, [2]string{field, value})
		}
	}
	return all
}
