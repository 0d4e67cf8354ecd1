package backups

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

// recipients are the flags that state for whom a backup is encrypted.
type recipients struct {
	named *[]string
	plain *bool
}

func addRecipients(c *cobra.Command) recipients {
	return recipients{
		named: c.Flags().StringArray("recipient", nil,
			"public key of age, or file with public keys, for which the backup is encrypted; may be repeated"),
		plain: c.Flags().Bool("plain", false, "do not encrypt the backup: who reads the file controls the cluster"),
	}
}

// keys returns the public keys; none: the backup is not encrypted.
func (r recipients) keys() ([]string, error) {
	switch named := len(*r.named) > 0; {
	case *r.plain && named:
		return nil, errors.New("--plain and --recipient: give only one of them")
	case *r.plain:
		return nil, nil
	case !named:
		return nil, errors.New("--recipient is missing: give a public key of age, or --plain for a backup that is " +
			"not encrypted")
	}
	keys, err := backup.PublicKeys(*r.named)
	if err != nil {
		return nil, fmt.Errorf("--recipient: %w", err)
	}
	return keys, nil
}

func warnPlain(con *console.Console, path string, plain bool) {
	if plain {
		con.Warn("the backup is not encrypted: who reads " + path + " has all keys and all Secrets of the cluster")
	}
}
