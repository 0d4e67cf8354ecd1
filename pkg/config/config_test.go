package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
)

func TestEveryFieldHasARow(t *testing.T) {
	var c Config
	pointers := map[string]bool{}
	for _, s := range settings {
		if s.Help == "" || s.Flag == "" || s.Verbs == 0 || strings.HasSuffix(s.Help, ".") {
			t.Errorf("%s: incomplete row", s.Field)
		}
		if s.Default != "" {
			if err := s.at(&c).set(s.Default); err != nil {
				t.Errorf("%s: default: %v", s.Field, err)
			}
		}
		if pointers[s.Field] || pointers[s.Flag] {
			t.Errorf("%s: twice", s.Field)
		}
		pointers[s.Field] = true
	}
	names := fieldNames("", reflect.TypeFor[Config]())
	if len(names) != len(settings) {
		t.Errorf("Config has %d fields, the table %d rows", len(names), len(settings))
	}
	for _, name := range names {
		found := false
		for _, s := range settings {
			found = found || strings.EqualFold(s.Field, name)
		}
		if !found {
			t.Errorf("no row for %s", name)
		}
	}
}

func fieldNames(block string, of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name := block + of.Field(i).Name
		inner := of.Field(i).Type
		own := inner.PkgPath() == of.PkgPath() || inner == reflect.TypeFor[connection.SSH]()
		if own && inner.Kind() == reflect.Struct {
			names = append(names, fieldNames(name+".", inner)...)
			continue
		}
		if name != "Nodes" { // a list of its own
			names = append(names, name)
		}
	}
	return names
}

func TestDefaultIsValid(t *testing.T) {
	if errs := Default().Validate(RoleControlPlane); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	if got := Default().DNSServerIP.String(); got != "10.96.0.10" {
		t.Errorf("DNSServerIP = %s", got)
	}
}

func TestUDPOnlyOnAMD64(t *testing.T) {
	c := Default()
	c.Arch, c.FlannelBackend = "arm64", "udp"
	if err := c.Validate(""); len(err) != 1 || !strings.Contains(err[0].Error(), "amd64 only") {
		t.Error(err)
	}
}

func TestWorkerNeeds(t *testing.T) {
	if errs := Default().Validate(RoleWorker); len(errs) != 1 || errs[0].Field != "masterIP" {
		t.Error(errs)
	}
	errs := Default().ValidateJoin(RoleWorker)
	var fields []string
	for _, e := range errs {
		fields = append(fields, e.Field)
	}
	if got := strings.Join(fields, " "); got != "masterIP token caCertHash" {
		t.Errorf("asked for: %s", got)
	}
}
