package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestSeparate(t *testing.T) {
	root, cluster := &cobra.Command{Use: "kube-bootstrap"}, &cobra.Command{Use: "cluster"}
	root.PersistentFlags().String("progress", "", "")
	kubectl := &cobra.Command{Use: "kubectl", Run: func(*cobra.Command, []string) {}}
	kubectl.Flags().String("name", "", "")
	kubectl.Flags().StringP("config", "f", "", "")
	PassOn(kubectl, 0)
	ssh := &cobra.Command{Use: "ssh", Run: func(*cobra.Command, []string) {}}
	ssh.Flags().String("cluster", "", "")
	PassOn(ssh, 1)
	cluster.AddCommand(kubectl, ssh)
	root.AddCommand(cluster)
	for in, want := range map[string]string{
		"cluster kubectl":                                  "cluster kubectl",
		"cluster kubectl get nodes -n x":                   "cluster kubectl -- get nodes -n x",
		"cluster kubectl -n kube-system get pods":          "cluster kubectl -- -n kube-system get pods",
		"cluster kubectl --name two -n x get pods":         "cluster kubectl --name two -- -n x get pods",
		"cluster kubectl --name=two --progress none get":   "cluster kubectl --name=two --progress none -- get",
		"--progress none cluster kubectl get -o json":      "cluster kubectl --progress none -- get -o json",
		"cluster kubectl -f c.yaml apply -f a.yaml":        "cluster kubectl -f c.yaml -- apply -f a.yaml",
		"cluster kubectl --name two -- get nodes -n x":     "cluster kubectl --name two -- get nodes -n x",
		"cluster kubectl exec pod -- ls -l":                "cluster kubectl -- exec pod -- ls -l",
		"cluster kubectl --help":                           "cluster kubectl --help",
		"cluster kubectl get --help":                       "cluster kubectl -- get --help",
		"__complete cluster kubectl -n kube-system get po": "__complete cluster kubectl -- -n kube-system get po",
		"cluster ssh w":                                    "cluster ssh w",
		"cluster ssh w ls -l":                              "cluster ssh w -- ls -l",
		"cluster ssh --cluster two w ls --cluster":         "cluster ssh --cluster two w -- ls --cluster",
		"cluster ssh w --cluster two ls -l":                "cluster ssh w --cluster two -- ls -l",
		"cluster ssh w -- ls -l":                           "cluster ssh w -- ls -l",
		"cluster ssh w --clutser two":                      "cluster ssh w --clutser -- two",
		"cluster":                                          "cluster",
		"nothing -x":                                       "nothing -x",
	} {
		if got := strings.Join(Separate(root, strings.Fields(in)), " "); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
