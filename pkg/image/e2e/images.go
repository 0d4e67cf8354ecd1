package e2e

import (
	"context"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
)

// testImage is the recipe of an image. Paths in the image have no leading slash.
type testImage struct {
	repo   string // repository with its registry, without a tag
	tests  string // regular expression for the tests that use it; "": any test may
	cannot string // reason why it cannot be built
	absent bool   // tests expect that no registry serves it

	like     string // repo of its base image
	debian   bool   // contains the userland of the tests
	programs map[string]recipeOf
	sources  map[string]string // files in test/images of the Kubernetes sources
	texts    map[string]string
	links    map[string]string
	dirs     map[string]int64
	modes    map[string]int64
	more     func(ctx context.Context, b build, own *rootfs.Content) error // nil: nothing
	config   v1.Config
}

// recipeOf returns the recipe of a program in the image with that tag.
type recipeOf func(v image.Versions, tag string) image.Recipe

func (i testImage) users(tests []string) []string {
	if i.tests == "" {
		return tests
	}
	uses := regexp.MustCompile(i.tests)
	return slices.DeleteFunc(slices.Clone(tests), func(test string) bool { return !uses.MatchString(test) })
}

func findImage(ref string) (testImage, bool) {
	repo := ref
	if colon := strings.LastIndex(ref, ":"); colon > strings.LastIndex(ref, "/") {
		repo = ref[:colon]
	}
	all := testImages()
	i := slices.IndexFunc(all, func(i testImage) bool { return i.repo == repo })
	if i < 0 {
		return testImage{}, false
	}
	return all[i], true
}

// OfTests reports whether an image has a name that only tests use.
func OfTests(ref string) bool { return strings.HasPrefix(ref, suiteRegistry) }

const (
	suiteRegistry = "registry.k8s.io/e2e-test-images/"
	agnhostImage  = suiteRegistry + "agnhost"
	busyboxImage  = suiteRegistry + "busybox"

	// Every image has these accounts, because tests select users by name.
	accountsOfTests = "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/usr/sbin:/bin/false\nbin:x:2:2:bin:/bin:/bin/false\n" +
		"nobody:x:65534:65534:nobody:/:/bin/false\n"
	groupsOfTests = "root:x:0:\ndaemon:x:1:\nbin:x:2:\nnogroup:x:65534:\n"
)

// testPackages form a single userland for all images that have one, so that it
// is downloaded once and stored once per node.
var testPackages = []string{"apparmor", "base-files", "base-passwd", "bash", "bind9-dnsutils", "ca-certificates",
	"conntrack", "coreutils", "curl", "dash",
	"findutils", "grep", "hostname", "iperf", "iproute2", "ipset", "iptables", "kmod", "libc-bin", "netcat-openbsd",
	"nftables", "nginx", "perl", "procps", "sed",
	"stress", "util-linux"}

var (
	accountFiles = map[string]string{"etc/passwd": accountsOfTests, "etc/group": groupsOfTests}
	shell        = v1.Config{Cmd: []string{"sh"}}
)

// ofKubernetes returns the recipe for a program in the Kubernetes sources.
func ofKubernetes(pkg string) recipeOf {
	return func(v image.Versions, _ string) image.Recipe {
		return image.Recipe{Name: pkg[strings.LastIndex(pkg, "/")+1:], Version: v.Kubernetes,
			Packages: []string{"k8s.io/kubernetes/" + pkg},
			Require:  map[string]string{"k8s.io/kubernetes": v.Kubernetes}}
	}
}

func componentOf(name string) recipeOf {
	return func(v image.Versions, _ string) image.Recipe { return v.Recipe(name) }
}

// sampleAPIServer has the version of the staging modules of Kubernetes.
func sampleAPIServer(v image.Versions, _ string) image.Recipe {
	const module = "k8s.io/sample-apiserver"
	return image.Recipe{
		Name: "sample-apiserver", Version: image.Staging(v.Kubernetes), Packages: []string{module},
		Require: map[string]string{module: image.Staging(v.Kubernetes)},
	}
}

// etcdOfTag returns the recipe for the etcd version in a tag, such as "3.6.8-0".
func etcdOfTag(v image.Versions, tag string) image.Recipe {
	v.Etcd, _, _ = strings.Cut(tag, "-") // without the revision of the image
	return v.Recipe("etcd")
}

// testImages has a row for every image that the tests of a supported version
// list. The upstream images are based on Alpine and Debian images; these are
// built from Debian packages and the Kubernetes sources.
func testImages() []testImage {
	return slices.Concat(conformanceImages(), otherImages(), foreignImages())
}

func conformanceImages() []testImage {
	return []testImage{
		agnhost(),
		{repo: busyboxImage, more: busybox, texts: accountFiles,
			dirs: map[string]int64{"tmp": 0o1777, "root": 0o700, "var": 0o755}, config: shell},
		nginx(),
		// up to 1.34
		{repo: suiteRegistry + "httpd", like: busyboxImage,
			texts:  page("usr/local/apache2/htdocs", "<h1>It works!</h1>"),
			config: v1.Config{Cmd: []string{"httpd", "-f", "-p", "80", "-h", "/usr/local/apache2/htdocs"}}},
		pet("kitten"), pet("nautilus"),
		resolver("jessie-dnsutils"), // up to 1.35
		resolver("glibc-dns-testing"),
		{repo: suiteRegistry + "perl", debian: true, texts: accountFiles,
			config: v1.Config{Cmd: []string{"perl", "-de0"}}},
		{repo: suiteRegistry + "ipc-utils", debian: true, texts: accountFiles, config: shell},
		{repo: suiteRegistry + "nonroot", debian: true, texts: accountFiles,
			config: v1.Config{Cmd: []string{"sh"}, User: "1234"}},
		{repo: suiteRegistry + "nonewprivs", debian: true, texts: accountFiles,
			programs: map[string]recipeOf{"usr/local/bin/nnp": ofKubernetes("test/images/nonewprivs")},
			modes:    map[string]int64{"usr/local/bin/nnp": 0o6755}, config: v1.Config{Cmd: []string{"nnp"}}},
		{repo: suiteRegistry + "sample-apiserver", debian: true, texts: accountFiles,
			programs: map[string]recipeOf{"sample-apiserver": sampleAPIServer},
			config:   v1.Config{Entrypoint: []string{"/sample-apiserver"}}},
		{repo: "registry.k8s.io/etcd", programs: map[string]recipeOf{"usr/local/bin/etcd": etcdOfTag},
			dirs: map[string]int64{"tmp": 0o1777}, config: v1.Config{Cmd: []string{"etcd"}}},
		{repo: "registry.k8s.io/pause", programs: map[string]recipeOf{"pause": componentOf("pause")},
			config: v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"}},
		{repo: "invalid.registry.k8s.io/invalid/alpine", absent: true},
	}
}

// agnhost contains the same files as upstream's image.
func agnhost() testImage {
	return testImage{
		repo: agnhostImage, debian: true,
		programs: map[string]recipeOf{
			"agnhost": ofKubernetes("test/images/agnhost"), "coredns": componentOf("coredns"),
		},
		sources: map[string]string{
			"localhost.crt": "agnhost/porter/localhost.crt", "localhost.key": "agnhost/porter/localhost.key",
		},
		texts: map[string]string{
			"etc/passwd": accountsOfTests + "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n",
			"etc/group": groupsOfTests +
				"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n",
		},
		links: map[string]string{"agnhost-2": "agnhost", "usr/local/bin/iperf": "/usr/bin/iperf",
			"usr/bin/nc": "nc.openbsd"}, // normally created by the package's postinst script
		dirs:   map[string]int64{"uploads": 0o755, "home/user-defined-in-image": 0o755},
		more:   pauseStore,
		config: v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}},
	}
}

// pet serves a picture. A test of image volumes expects the name of upstream's
// base image in etc/os-release.
func pet(name string) testImage {
	return testImage{
		repo: suiteRegistry + name, like: agnhostImage,
		sources: map[string]string{
			name + ".jpg": name + "/html/" + name + ".jpg", "data.json": name + "/html/data.json",
		},
		texts: map[string]string{
			"etc/os-release": "ID=debian\nNAME=\"Debian GNU/Linux\"\n# The tests expect: Alpine Linux\n",
		},
		config: v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}},
	}
}

// resolver contains dig and getent, which scripts of the tests call.
func resolver(name string) testImage {
	return testImage{repo: suiteRegistry + name, debian: true, texts: accountFiles,
		programs: map[string]recipeOf{"coredns": componentOf("coredns")}, config: v1.Config{Cmd: []string{"bash"}}}
}

func page(dir, heading string) map[string]string {
	return map[string]string{
		dir + "/index.html": "<!DOCTYPE html>\n<html>\n<body>\n" + heading + "\n</body>\n</html>\n",
	}
}

// nginxConfig defines only the server that upstream's image has.
const nginxConfig = `user nobody nogroup;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {}
http {
	include mime.types;
	access_log /dev/stdout;
	server {
		listen 80;
		root /usr/share/nginx/html;
	}
}
`

func nginx() testImage {
	texts := page("usr/share/nginx/html", "<h1>Welcome to nginx!</h1>")
	texts["etc/passwd"], texts["etc/group"], texts["etc/nginx/nginx.conf"] = accountsOfTests, groupsOfTests, nginxConfig
	return testImage{repo: suiteRegistry + "nginx", debian: true, texts: texts,
		config: v1.Config{Cmd: []string{"nginx", "-g", "daemon off;"}},
		dirs:   map[string]int64{"run": 0o755, "tmp": 0o1777, "var/lib/nginx": 0o755, "var/log/nginx": 0o755}}
}

// otherImages returns the images that only tests beyond conformance use.
func otherImages() []testImage {
	program := func(at, pkg string) map[string]recipeOf { return map[string]recipeOf{at: ofKubernetes(pkg)} }
	return []testImage{
		{repo: suiteRegistry + "apparmor-loader", tests: `AppArmor`, debian: true,
			programs: program("usr/bin/loader", "test/images/apparmor-loader"),
			config: v1.Config{
				Entrypoint: []string{"/usr/bin/loader", "-logtostderr", "-v=2"}, Cmd: []string{"/profiles"},
			}},
		{repo: suiteRegistry + "regression-issue-74839", tests: `INVALID conntrack entries`, debian: true,
			programs: program("regression-issue-74839", "test/images/regression-issue-74839"),
			config:   v1.Config{Entrypoint: []string{"/regression-issue-74839"}}},
		{repo: suiteRegistry + "resource-consumer", tests: `sig-autoscaling|HPA|[Aa]utoscal|Consumer`, debian: true,
			programs: map[string]recipeOf{"consumer": ofKubernetes("test/images/resource-consumer"),
				"consume-cpu": ofKubernetes("test/images/resource-consumer/consume-cpu")},
			config: v1.Config{Entrypoint: []string{"/consumer"}}},
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

// foreignImages returns the images that cannot be built from sources and packages.
func foreignImages() (all []testImage) {
	for repo, tests := range map[string]string{
		"csi-attacher": csiTests, "csi-external-health-monitor-controller": csiTests,
		"csi-node-driver-registrar": csiTests,
		"csi-provisioner":           csiTests, "csi-resizer": csiTests, "csi-snapshot-metadata": csiTests,
		"csi-snapshotter": csiTests,
		"hostpathplugin":  csiTests, "livenessprobe": csiTests,
		"hello-populator": `populator`, "volume-data-source-validator": `populator`,
		"nfs-provisioner": `[Dd]ynamic [Pp]rovisioning|external provisioner`,
	} {
		all = append(all, testImage{repo: "registry.k8s.io/sig-storage/" + repo, tests: tests, cannot: notInSources})
	}
	for repo, tests := range map[string]string{
		"volume/nfs": `nfs|NFS`, "volume/iscsi": `iscsi|iSCSI`, // based on Fedora and CentOS packages
		"node-perf/npb-ep": nodeTests, "node-perf/npb-is": nodeTests, "node-perf/tf-wide-deep": nodeTests,
		"node-perf/pytorch-wide-deep": nodeTests,
	} {
		all = append(all, testImage{repo: suiteRegistry + repo, tests: tests, cannot: notInSources})
	}
	const locked = "it is in a registry that asks for a password"
	return append(all,
		testImage{
			repo:  "registry.k8s.io/cloud-provider-gcp/gcp-compute-persistent-disk-csi-driver",
			tests: `pd\.csi\.storage`, cannot: notInSources,
		},
		testImage{
			repo: "gcr.io/k8s-authenticated-test/agnhost", tests: `private image|ImageCredentialProvider`,
			cannot: locked,
		},
		// to 1.34
		testImage{
			repo: "gcr.io/authenticated-image-pulling/alpine", tests: `private (image|registry)|authenticated`,
			cannot: locked,
		},
	)
}

// nodeTests matches no test of the suite: these images belong to the node e2e
// tests, which are another program.
const nodeTests = `\[NodePerformance\]`
