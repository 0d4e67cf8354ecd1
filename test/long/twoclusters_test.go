//go:build e2e

package long

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
)

// TestTwoClusters makes two clusters side by side, which share nothing. What a
// third one cannot have is told before anything of it is made.
func TestTwoClusters(t *testing.T) {
	dir := t.TempDir()
	one := clusterUser{localcluster.User{Cluster: "e2e-one", Subnet: "10.217.0.0/16", Dir: dir}}
	two := clusterUser{localcluster.User{Cluster: "e2e-two", Subnet: "10.218.0.0/16", Dir: dir}}
	t.Cleanup(func() {
		for _, l := range []clusterUser{one, two} {
			// they are gone unless the test failed
			_, _ = l.Try(context.Background(), "kube-bootstrap cluster clean --yes; docker rm -f e2e-three-master-1")
		}
	})
	one.Sh(t,
		`printf 'apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: ""\nkind: Config\nusers: null\n' `+
			`>kubeconfig`)
	before := one.World(t)
	var both sync.WaitGroup
	for l, flags := range map[clusterUser]string{one: "--workers 0", two: "--masters 2 --workers 0"} {
		both.Go(func() {
			if out, err := l.Try(t.Context(), "kube-bootstrap cluster up --progress none "+flags+
				" && kube-bootstrap cluster kubeconfig --merge"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	both.Wait()
	for l, nodes := range map[clusterUser]int{one: 1, two: 2} {
		out := l.Sh(t, "kube-bootstrap cluster status && kubectl config use-context kube-bootstrap-"+l.Cluster+
			" && kubectl get nodes -o name")
		if strings.Count(out, "node/"+l.Cluster+"-") != nodes || strings.Count(out, "node/") != nodes {
			t.Errorf("cluster %s has other nodes than its own:\n%s", l.Cluster, out)
		}
	}
	t.Run("a third one", func(t *testing.T) { one.third(t) })
	t.Run("more control planes than there are", func(t *testing.T) {
		out, err := two.Try(t.Context(), "kube-bootstrap cluster up --masters 5 2>&1")
		if err == nil || !strings.Contains(out, "cluster e2e-two has no control plane e2e-two-master-3, "+
			"e2e-two-master-4, e2e-two-master-5") || !strings.Contains(out, "[cluster-differs]") {
			t.Errorf("got %v\n%s", err, out)
		}
		if all := two.Sh(t, "kube-bootstrap node list -o json"); strings.Contains(all, "master-3") {
			t.Errorf("something was made:\n%s", all)
		}
	})
	one.Sh(t, "kube-bootstrap cluster clean --yes")
	two.Sh(t, "kube-bootstrap cluster status && kubectl config use-context kube-bootstrap-e2e-two && kubectl get nodes")
	two.Sh(t, "kube-bootstrap cluster clean --yes")
	one.LeavesNothing(t, "clean of both", before)
}

// third asks for what cannot be beside a cluster that is there.
func (l clusterUser) third(t *testing.T) {
	port := l.Sh(t, "docker port e2e-one.api 6443 | sed 's/.*://;q'")
	const file = `apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\ndindSubnet: 10.219.0.0/16\nnodes:\n- ` +
		`{role: control-plane, %s}\n`
	for name, c := range map[string]struct{ command, want string }{
		"name": {
			"docker create --name e2e-three-master-1 " + l.image(t) +
				" true && kube-bootstrap cluster up --name e2e-three --dind-subnet 10.219.0.0/16",
			"container e2e-three-master-1 already exists and does not belong to cluster e2e-three; " +
				"use another --name, or remove it [cluster-name-taken]",
		},
		"subnet": {
			"kube-bootstrap cluster up --name e2e-four --dind-subnet 10.218.4.0/24",
			"--dind-subnet 10.218.4.0/24 overlaps with 10.218.0.0/16 of Docker network e2e-two; " +
				"use another --dind-subnet, such as 10.",
		},
		"port": {
			"kube-bootstrap cluster up --name e2e-four --dind-subnet 10.219.0.0/16 --api-server-port " + port,
			"--apiserver-port " + port + " is taken on this machine",
		},
		"memory": {
			fmt.Sprintf("printf '"+file+"' >big.yaml && kube-bootstrap cluster up --name e2e-four -f big.yaml",
				"memory: 9000Gi"), "nodes need 9216000 MiB of memory, the engine's machine has",
		},
		"disk": {
			fmt.Sprintf("printf '"+file+"' >big.yaml && kube-bootstrap cluster up --name e2e-four -f big.yaml",
				"disk: 9000Ti"), "hosts need 9437184000 MiB; free some space there",
		},
		"field": {
			fmt.Sprintf("printf '"+file+"' >big.yaml && kube-bootstrap cluster up --name e2e-four -f big.yaml",
				"memry: 9000Gi"), "big.yaml:5: nodes[0].memry: unknown field, did you mean memory?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := l.Try(t.Context(), "{ unset K8S_DIND_DIND_SUBNET; "+c.command+"; } 2>&1")
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("got %v\n%s\nwant %q", err, out, c.want)
			}
			if made := hosts.Docker(t, "ps", "-aq", "--filter", "label=kube-bootstrap.dev/cluster=e2e-three",
				"--filter", "label=kube-bootstrap.dev/cluster=e2e-four"); made != "" {
				t.Errorf("something was made: %s", made)
			}
		})
	}
	l.Sh(t, "rm -f big.yaml; docker rm e2e-three-master-1")
}

// image returns the name of an image that the engine has.
func (l clusterUser) image(t *testing.T) string {
	t.Helper()
	return hosts.Docker(t, "inspect", "-f", "{{.Image}}", l.Cluster+"-master-1")
}
