// Flanneld states in its log that it has written its file, as flanneld 0.28.10 does: after some
// seconds, and at the first starts without the file, as the test wants.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const dir = "/var/lib/kube-bootstrap/flannel"

func main() {
	starts := number("starts") + 1
	must(os.WriteFile(filepath.Join(dir, "starts"), fmt.Append(nil, starts), 0o644))
	// flanneld asks etcd first. Docker records the time of the start only after the process runs.
	time.Sleep(time.Duration(1+number("seconds")) * time.Second)
	path := filepath.Join(dir, "subnet.env")
	lease := "FLANNEL_NETWORK=10.1.0.0/16\nFLANNEL_SUBNET=10.1.3.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=true\n"
	if starts > number("lost") {
		must(os.WriteFile(path, []byte(lease), 0o644))
	}
	fmt.Println("Wrote subnet file to", path)
	time.Sleep(time.Hour)
}

func number(name string) int {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if os.IsNotExist(err) {
		return 0
	}
	must(err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
