package local

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
)

// RestoringFile exists from the beginning of a restore to its end.
const RestoringFile = host.StateDir + "/restoring.json"

// Restoring is the backup that a restore uses, in RestoringFile.
type Restoring struct {
	Cluster string    `json:"cluster"`
	Host    string    `json:"host"`
	Created time.Time `json:"created"`
}

// RecoveringFile exists from the beginning of a recovery to its end.
const RecoveringFile = host.StateDir + "/recovering"

// RecoveringMark is that file.
var RecoveringMark = host.File{
	Path: RecoveringFile, Data: []byte("`kube-bootstrap master --recover` has begun. Run it again to complete it.\n"),
}

// RestoringRecord is that file.
var RestoringRecord = host.Record[Restoring]{Path: RestoringFile}

// Restored are the settings of a control plane in a backup.
type Restored struct {
	Config        config.Config
	Host, Address string // of the control plane
	Registry, Key []byte // nil: none
}

// OpenRestored returns this host with the settings of a backup. given replaces the settings whose origin is the user.
func OpenRestored(r Restored, given config.Config, origins config.Origins) (*Host, error) {
	cfg := Transferable(r.Config).Reset("bundle", "bundleBase", "caFile", "verifyKey")
	unsaid := func(s config.Setting) bool { return origins[s.Field].Source <= config.FromHost }
	cfg, _ = given.WithInForce(unsaid, cfg, nil)
	cfg = r.placed(cfg)
	h, err := OpenWith(cfg, origins)
	if err != nil {
		return nil, err
	}
	h.Restoring = true
	takeKey(h, r.Key)
	if h.Registry == nil && r.Registry != nil {
		h.Registry, err = registry.Parse(r.Registry)
	}
	return h, cmp.Or(err, h.UseCatalogue())
}

// placed sets the name and the address of the control plane in the backup if this host has the address.
func (r Restored) placed(cfg config.Config) config.Config {
	if !cfg.IPAddress.IsValid() && cfg.NetInterface == "" && hasAddress(r.Address) {
		field, _ := config.Find("ipAddress")
		_ = field.Set(&cfg, r.Address) // the address of an interface
	}
	if addresses.Text(cfg.IPAddress) == r.Address {
		cfg.HostName = cmp.Or(cfg.HostName, r.Host)
	}
	return cfg
}

func hasAddress(ip string) bool {
	found, _ := links.All() // preflight reports errors
	return slices.ContainsFunc(found, func(l links.Link) bool {
		return slices.ContainsFunc(l.Addrs, func(a netip.Prefix) bool { return a.Addr().String() == ip })
	})
}
