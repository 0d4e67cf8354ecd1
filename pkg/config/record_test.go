package config

import (
	"maps"
	"testing"
)

func TestOnlyARecordedSettingIsChanged(t *testing.T) {
	m := ClusterRecord{
		Given: map[string]string{"kubernetesVersion": "v1.36.3"}, Defaults: map[string]string{"etcdVersion": ""},
	}
	m.Change("kubernetesVersion", "v1.37.2")
	m.Change("unknown", "x")
	if m.Value("kubernetesVersion") != "v1.37.2" || !maps.Equal(m.Defaults, map[string]string{"etcdVersion": ""}) {
		t.Errorf("got %+v", m)
	}
}
