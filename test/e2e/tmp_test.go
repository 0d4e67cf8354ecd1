//go:build e2e && bench

package e2e

import ("testing";"fmt")

func TestTmp(t *testing.T) {
	made := hosts(t, "docker-28.5", "10.193.9.0/24", "off-a", "off-b")
	s := saved(t, made[0])
	fmt.Printf("RESULT saved %+v\n", s)
	for range 2 {
	for _, bin := range []string{"/tmp/w/off/kb2", built.binary} {
		made[1].put(t, bin, "/usr/local/bin/kube-bootstrap")
		c := carried{path: "/tmp/w/off/d1363.tar.zst"}
		c.loadInto(t, made[1])
		fmt.Printf("RESULT %s %+v\n", bin, c)
	}
	}
	fmt.Println("RESULT load again", secondsOf(t, made[0], "docker rmi -f $(kube-bootstrap offline list) >/dev/null; docker load -q -i "+s.path))
}
