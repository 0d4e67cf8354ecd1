package flannel
