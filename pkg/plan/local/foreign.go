package local

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// owners records who owned each file of the user that the settings name. Later runs and the agent
// read these files again, as root: another user must not be able to take the place of a file that a
// reboot has removed from /tmp.
var owners = host.Record[map[string]int]{Path: OwnersPath}

// OwnersPath is the path of this record.
const OwnersPath = host.StateDir + "/owners.json"

// named returns the files of the user that the settings name, by the field.
func named(h *Host) map[string][]string {
	all := map[string][]string{
		"bundle": {h.Config.Bundle}, "verifyKey": {h.Config.VerifyKey}, "caFile": {h.Config.CAFile},
		"cniPlugin": {h.Config.CNIPlugin}, "addons": h.Config.Addons,
	}
	for _, field := range []string{"cniPlugin", "addons"} {
		all[field] = slices.DeleteFunc(slices.Clone(all[field]), func(name string) bool {
			return !extension.IsPath(name)
		})
	}
	return all
}

// OwnersFile returns the record of the owners. It keeps the owner of a file that is missing, or
// that another user has put there.
func OwnersFile(h *Host) (host.File, error) {
	known, err := owners.Read(h.Files)
	if err != nil && !host.Lost(err) {
		return host.File{}, err
	}
	now := map[string]int{}
	for field, paths := range named(h) {
		for _, path := range paths {
			owner, err := host.Owner(h.Files, path)
			if err != nil || Foreign(h, field, path) {
				owner = known[path]
			}
			now[path] = owner
		}
	}
	maps.DeleteFunc(now, func(path string, owner int) bool { return path == "" || owner == 0 })
	return owners.File(now)
}

// Foreign reports whether a file of the user is named by the saved settings only, and another user
// may have put it there since.
func Foreign(h *Host, field, path string) bool {
	if path == "" || h.Given[field].Source > config.FromCluster {
		return false
	}
	known, _ := owners.Read(h.Files) // without the record, files of root count
	return host.Foreign(h.Files, path, known[path])
}

// ForeignError is the error of a file that is Foreign.
func ForeignError(field, path string) error {
	return fmt.Errorf("%s: another user of this host may have put %s there since the last run; "+
		"name the file again (--%s) if it is yours", field, path, flagOf(field))
}

func flagOf(field string) string {
	s, _ := config.Find(field)
	return s.Flag
}
