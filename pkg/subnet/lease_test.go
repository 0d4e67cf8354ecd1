package subnet

import (
	"errors"
	"io/fs"
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const good = "FLANNEL_NETWORK=10.1.0.0/16\nFLANNEL_SUBNET=10.1.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"

func TestRead(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if _, err := Read(files, "/run/flannel"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	if err := files.Write("/run/flannel/subnet.env", []byte(good), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Read(files, "/run/flannel")
	want := Lease{
		Network: netip.MustParsePrefix("10.1.0.0/16"), Subnet: netip.MustParsePrefix("10.1.3.1/24"), MTU: 1450,
	}
	if err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestLeaseIsStrict(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, text := range map[string]string{
		"empty":             "",
		"cut":               strings.TrimSuffix(good, "\n"),
		"no subnet":         change("FLANNEL_SUBNET=10.1.3.1/24\n", ""),
		"twice":             good + "FLANNEL_MTU=1450\n",
		"something else":    good + "rm -rf /\n",
		"outside":           change("10.1.3.1/24", "10.2.3.1/24"),
		"not the first":     change("10.1.3.1/24", "10.1.3.7/24"),
		"as large as all":   change("10.1.3.1/24", "10.1.0.1/16"),
		"no room":           change("10.1.3.1/24", "10.1.3.1/31"),
		"host bits":         change("10.1.0.0/16", "10.1.0.1/16"),
		"IPv6":              change("10.1.0.0/16", "fd00::/48"),
		"MTU of nothing":    change("1450", "0"),
		"MTU not a number":  change("1450", "1450 "),
		"masq not a choice": change("true", "perhaps"),
	} {
		if lease, err := parse(text); err == nil {
			t.Errorf("%s: read as %v", name, lease)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("")
	f.Add("FLANNEL_SUBNET=0.0.0.1/0\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parse(text)
		if err != nil {
			return
		}
		if !l.Network.Overlaps(l.Subnet) || !l.Network.Contains(l.Subnet.Addr()) || l.MTU <= 0 {
			t.Errorf("read %q as %v", text, l)
		}
	})
}
