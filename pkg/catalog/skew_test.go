package catalog

import (
	"strings"
	"testing"
)

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		check    func(a, b string) error
		a, b     string
		want     string // "": allowed
		whatItIs string
	}{
		{CheckChange, "v1.36.3", "v1.36.3", "", "the same"},
		{CheckChange, "v1.36.1", "v1.36.3", "", "a newer patch"},
		{CheckChange, "v1.36.3+5d7e3f0a91b2", "v1.36.3", "", "a checkout of it"},
		{CheckChange, "v1.36.3", "v1.36.1", "cannot go back", "an older patch"},
		{CheckChange, "v1.36.3", "v1.35.4", "cannot go back", "an older minor version"},
		{CheckChange, "v1.36.3", "v1.37.2", "newer minor version", "the next minor version"},
		{CheckChange, "v1.34.4", "v1.36.3", "skipped", "the one after"},
		{CheckChange, "x", "v1.36.3", `version "x"`, "no version"},
		{CheckUpgrade, "v1.36.3", "v1.37.2", "", "the next minor version"},
		{CheckUpgrade, "v1.36.1", "v1.36.3", "same minor version", "a newer patch"},
		{CheckUpgrade, "v1.34.4", "v1.36.3", "skipped", "the one after"},
		{CheckUpgrade, "v1.36.3", "v1.35.4", "cannot go back", "an older minor version"},
		{CheckEtcdUpgrade, "3.6.11", "3.7.3", "", "the oldest etcd that may change"},
		{CheckEtcdUpgrade, "3.6.8-0", "3.7.3", "needs 3.6.11", "an older patch of etcd"},
		{CheckEtcdUpgrade, "3.6.8", "3.6.16", "", "the same minor version of etcd"},
		{CheckKubelet, "v1.36.3", "v1.36.1", "", "a newer patch"},
		{CheckKubelet, "v1.34.0", "v1.37.2", "", "three older"},
		{CheckKubelet, "v1.33.0", "v1.37.2", "more than 3", "four older"},
		{CheckKubelet, "v1.37.0", "v1.36.3", "must not be newer", "newer"},
		{CheckControlPlane, "v1.36.3", "v1.36.1", "", "another patch"},
		{CheckControlPlane, "v1.35.4", "v1.36.1", "same minor", "an older one"},
		{CheckControlPlane, "v1.37.2", "v1.36.1", "same minor", "a newer one"},
		{CheckEtcdChange, "3.6.8-0", "3.7.3", "", "a newer etcd"},
		{CheckEtcdChange, "3.7.3", "3.7.1", "", "an older patch of etcd"},
		{CheckEtcdChange, "3.7.0-0", "3.6.16", "cannot go back", "an older etcd"},
	} {
		err := c.check(c.a, c.b)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %s: got %v, want %q", c.whatItIs, c.a, c.b, err, c.want)
		}
	}
}

func TestComponents(t *testing.T) {
	for _, c := range []struct {
		check func(string) error
		text  string
		want  string // "": allowed
	}{
		{CheckEtcd, "v3.7.3", ""}, {CheckEtcd, "3.6.16-0", ""}, {CheckEtcd, "v3.6.14", ""}, {CheckEtcd, "v3.7.1", ""},
		{CheckEtcd, "3.6.13", "must be 3.6.14 or newer: 3.6.13 lets every host"},
		{CheckEtcd, "3.6.8-0", "must be 3.6.14"}, {CheckEtcd, "v3.7.0", "must be 3.7.1"},
		{CheckEtcd, "v2.2.5", "must be a release of etcd 3.6 to 3.7, such as v"},
		{CheckEtcd, "v3.8.0-alpha.0", "must be"}, {CheckEtcd, "v3", "must be"},
		{CheckEtcd, "v3.8.0", "must be"}, {CheckEtcd, "v4.6.0", "must be"},
		{CheckFlannel, "v" + Newest().Flannel, ""}, {CheckFlannel, "v0.28.9", ""},
		{CheckFlannel, "v0.6.1", "must be a release of flannel 0.28, such as v"}, {CheckFlannel, "../x", "must be"},
	} {
		err := c.check(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.text, err, c.want)
		}
	}
}
