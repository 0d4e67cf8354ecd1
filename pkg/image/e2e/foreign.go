package e2e

import v1 "github.com/google/go-containerregistry/pkg/v1"

// otherImages returns the images that only tests beyond conformance use. They
// are built when such tests are selected.
func otherImages() []testImage {
	program := func(at, pkg string) map[string]recipeOf { return map[string]recipeOf{at: ofKubernetes(pkg)} }
	return []testImage{
		{repo: suiteRegistry + "apparmor-loader", tests: `AppArmor`, debian: true, programs: program("usr/bin/loader", "test/images/apparmor-loader"),
			config: v1.Config{Entrypoint: []string{"/usr/bin/loader", "-logtostderr", "-v=2"}, Cmd: []string{"/profiles"}}},
		{repo: suiteRegistry + "regression-issue-74839", tests: `INVALID conntrack entries`, debian: true,
			programs: program("regression-issue-74839", "test/images/regression-issue-74839"), config: v1.Config{Entrypoint: []string{"/regression-issue-74839"}}},
		{repo: suiteRegistry + "resource-consumer", tests: `sig-autoscaling|HPA|[Aa]utoscal|Consumer`, debian: true,
			programs: map[string]recipeOf{"consumer": ofKubernetes("test/images/resource-consumer"),
				"consume-cpu": ofKubernetes("test/images/resource-consumer/consume-cpu")}, config: v1.Config{Entrypoint: []string{"/consumer"}}},
		{repo: suiteRegistry + "sample-device-plugin", tests: `[Dd]evice ?[Pp]lugin|Extended Resource`, debian: true,
			programs: program("sampledeviceplugin", "test/images/sample-device-plugin"),
			config:   v1.Config{Entrypoint: []string{"/sampledeviceplugin", "-alsologtostderr"}}},
		{repo: "registry.k8s.io/build-image/distroless-iptables", tests: `KubeProxy`, debian: true, config: shell},
	}
}

const (
	notInSources = "the Kubernetes sources do not contain it"
	csiTests     = `Driver: csi|csi-hostpath|[Cc][Ss][Ii][ -][Mm]ock`
)

// foreignImages returns the images that cannot be built from the Kubernetes
// sources and Debian packages.
func foreignImages() (all []testImage) {
	for repo, tests := range map[string]string{
		"csi-attacher": csiTests, "csi-external-health-monitor-controller": csiTests, "csi-node-driver-registrar": csiTests,
		"csi-provisioner": csiTests, "csi-resizer": csiTests, "csi-snapshot-metadata": csiTests, "csi-snapshotter": csiTests,
		"hostpathplugin": csiTests, "livenessprobe": csiTests,
		"hello-populator": `populator`, "volume-data-source-validator": `populator`,
		"nfs-provisioner": `[Dd]ynamic [Pp]rovisioning|external provisioner`,
	} {
		all = append(all, testImage{repo: "registry.k8s.io/sig-storage/" + repo, tests: tests, cannot: notInSources})
	}
	for repo, tests := range map[string]string{
		"volume/nfs": `nfs|NFS`, "volume/iscsi": `iscsi|iSCSI`, // based on Fedora and CentOS packages
		"node-perf/npb-ep": nodeTests, "node-perf/npb-is": nodeTests, "node-perf/tf-wide-deep": nodeTests, "node-perf/pytorch-wide-deep": nodeTests,
	} {
		all = append(all, testImage{repo: suiteRegistry + repo, tests: tests, cannot: notInSources})
	}
	const locked = "it is in a registry that asks for a password"
	return append(all,
		testImage{repo: "registry.k8s.io/cloud-provider-gcp/gcp-compute-persistent-disk-csi-driver", tests: `pd\.csi\.storage`, cannot: notInSources},
		testImage{repo: "gcr.io/k8s-authenticated-test/agnhost", tests: `private image|ImageCredentialProvider`, cannot: locked},
		testImage{repo: "gcr.io/authenticated-image-pulling/alpine", tests: `private (image|registry)|authenticated`, cannot: locked}, // to 1.34
	)
}

// nodeTests matches no test of the suite: these images belong to the node e2e
// tests, which are another program.
const nodeTests = `\[NodePerformance\]`
