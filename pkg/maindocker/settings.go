package maindocker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
)

// settings is the content of daemon.json.
type settings map[string]any

// readSettings reads daemon.json. A missing or empty file has no settings.
func readSettings(files host.Files) (settings, error) {
	data, err := files.Read(daemonJSON)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s, err := decode(data)
	if err != nil {
		return nil, &step.Problem{
			Name: "daemon-json", Text: daemonJSON + " is not a JSON object: " + err.Error(),
			Remedy: "correct it, because Docker cannot read it either",
		}
	}
	return s, nil
}

func decode(data []byte) (settings, error) {
	s := settings{}
	if len(bytes.TrimSpace(data)) == 0 {
		return s, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // keep the format of the user's numbers
	if err := d.Decode(&s); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("data after the JSON object")
	}
	if s == nil { // "null"
		s = settings{}
	}
	return s, nil
}

// writeSettings writes daemon.json; nil leaves it as it is.
func writeSettings(files host.Files, data []byte) error {
	if data == nil {
		return nil
	}
	return files.UserFile(daemonJSON).Replace(data, 0o644)
}

func encode(s settings) []byte {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // impossible: decode returned the values, or settingsFor
	}
	return append(data, '\n')
}

// settingsFor returns the settings of Move. It keeps the user's accept mark,
// because there can be only one.
func settingsFor(lease subnet.Lease, owner settings, directRouting bool) (settings, error) {
	if lease.Subnet.Bits() > 30 || !lease.Subnet.IsValid() {
		return nil, fmt.Errorf("the lease %s is too small for docker0", lease.Subnet)
	}
	s := settings{
		"bip":        lease.Subnet.String(),
		"mtu":        json.Number(fmt.Sprint(lease.MTU)),
		"fixed-cidr": lowerHalf(lease.Subnet).String(),
		"ip-masq":    false, // flanneld masquerades, except inside of the overlay
	}
	nftables := usesNftables(owner)
	if nftables && directRouting {
		s["allow-direct-routing"] = true
	}
	if nftables && owner[acceptMark] == nil {
		s[acceptMark] = ourMark
	}
	return s, nil
}

// Fit returns the lease with the MTU of the user's daemon.json, if that is smaller: a network
// between the hosts may not carry larger packets. It uses the recorded MTU if another program
// has deleted the key or the file.
func Fit(files host.Files, lease subnet.Lease) (subnet.Lease, error) {
	owner, before, err := unmerged(files)
	if err == nil && owner["mtu"] == nil {
		owner = before
	}
	if host.Lost(err) {
		owner, err = readSettings(files)
		if areOurs(owner) {
			owner = withoutOurs(owner)
		}
	}
	var mtu int
	if _, scanErr := fmt.Sscan(fmt.Sprint(owner["mtu"]), &mtu); scanErr == nil && mtu > 0 {
		lease.MTU = min(lease.MTU, mtu)
	}
	return lease, err
}

// usesNftables reports whether Docker writes nftables and not iptables.
func usesNftables(s settings) bool { return s["firewall-backend"] == "nftables" }

// lowerHalf returns the part of the subnet for Docker's containers.
func lowerHalf(subnet netip.Prefix) netip.Prefix {
	return netip.PrefixFrom(subnet.Masked().Addr(), subnet.Bits()+1)
}

// upperHalf returns the part of the subnet for pods.
func upperHalf(subnet netip.Prefix) netip.Prefix {
	half := lowerHalf(subnet)
	first := half.Addr().As4()
	at := subnet.Bits()
	first[at/8] |= 0x80 >> (at % 8)
	return netip.PrefixFrom(netip.AddrFrom4(first), half.Bits())
}

func merge(owner, ours settings) settings {
	merged := settings{}
	maps.Copy(merged, owner)
	maps.Copy(merged, ours)
	return merged
}

func differences(now, want settings) (diff step.Diff) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(now[key], want[key]) {
			diff = append(diff, fmt.Sprintf("change %s: %s = %v", daemonJSON, key, want[key]))
		}
	}
	return diff
}

// ourKeys are all keys that settingsFor may set.
var ourKeys = []string{"bip", "mtu", "fixed-cidr", "ip-masq", "allow-direct-routing", acceptMark}

// unmerge removes Move's keys from now if their values are unchanged, and
// restores the user's values.
func unmerge(now, wrote, owner settings) settings {
	back := merge(now, nil)
	for _, key := range ourKeys {
		if !reflect.DeepEqual(now[key], wrote[key]) {
			continue // changed by the user since
		}
		if before, had := owner[key]; had {
			back[key] = before
		} else {
			delete(back, key)
		}
	}
	return back
}

// unmerged returns the settings of daemon.json without Move's, and the user's
// before Move. It returns fs.ErrNotExist if the file was never replaced.
func unmerged(files host.Files) (back, owner settings, err error) {
	owner, err = original(files)
	if err != nil {
		return nil, nil, err
	}
	ours, oursErr := files.UserFile(daemonJSON).Ours()
	wrote, wroteErr := decode(ours)
	now, err := readSettings(files)
	return unmerge(now, wrote, owner), owner, errors.Join(oursErr, wroteErr, err)
}

// unmergeFile removes Move's keys from daemon.json. If the user has changed
// nothing else, it restores the original bytes.
func unmergeFile(ctx context.Context, files host.Files) error {
	back, owner, err := unmerged(files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if reflect.DeepEqual(back, owner) {
		return files.UserFile(daemonJSON).Restore()
	}
	return files.UserFile(daemonJSON).Return(ctx, encode(back), 0o644)
}

// areOurs reports whether settings look like settings of Move.
func areOurs(now settings) bool {
	bip, _ := now["bip"].(string)
	subnet, err := netip.ParsePrefix(bip)
	return err == nil && subnet.Bits() <= 30 && now["fixed-cidr"] == lowerHalf(subnet).String() &&
		now["ip-masq"] == false && now["mtu"] != nil
}

// withoutOurs returns now without the settings of Move.
func withoutOurs(now settings) settings {
	wrote := merge(now, settings{"allow-direct-routing": true, acceptMark: ourMark})
	return unmerge(now, wrote, settings{})
}

// validateNext returns a problem if Docker would not start with data as its
// daemon.json; nil stands for the current file.
func validateNext(ctx context.Context, files host.Files, data []byte) error {
	if data == nil {
		now, err := readSettings(files)
		if err != nil {
			return err
		}
		data = encode(now)
	}
	return validate(ctx, data)
}

// validate makes dockerd check the settings before anything is stopped.
func validate(ctx context.Context, data []byte) error {
	err := host.WithTempFile("daemon-*.json", data, func(path string) error {
		_, err := host.Run(ctx, "dockerd", "--validate", "--config-file", path)
		return err
	})
	switch {
	case err == nil, !host.HasProgram("dockerd"):
		return nil
	case strings.Contains(err.Error(), "unknown flag: --validate"):
		return nil // Docker before 23.0
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &step.Problem{
		Name: "daemon-json", Text: daemonJSON + ": Docker would not start with it: " + err.Error(),
		Remedy: "correct it",
	}
}

// allowsDirectRouting reports whether this Docker (28.2 and later) has the
// setting that lets packets reach unpublished ports of containers; an older
// one would not start with it. It asks dockerd instead of comparing versions,
// because builds of distributions number them differently.
// https://github.com/moby/moby/blob/v28.2.0/cmd/dockerd/config_unix.go#L41
func allowsDirectRouting(ctx context.Context) bool {
	args := []string{"dockerd", "--validate", "--config-file", "/dev/stdin"}
	_, err := host.Command{Args: args, Stdin: strings.NewReader(`{"allow-direct-routing": true}`)}.Run(ctx)
	return err == nil
}

// RegistryFiles returns the certificate files for a private registry. Docker
// reads them on each access. Credentials belong to Docker's clients.
func RegistryFiles(to *registry.Registry) []host.File {
	return to.CertificateFiles(path.Join("/etc/docker/certs.d", to.Host()))
}
