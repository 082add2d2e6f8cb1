// Package realtest runs a real Kubernetes control plane on 127.0.0.1: etcd, kube-apiserver
// and, where asked for, kube-scheduler and kube-controller-manager, with the CRDs of
// Karpenter and a small kubelet that exists in the test alone.
//
// It is a module of its own, because Kubernetes is heavy. The binaries are built once, from
// the versions in go.mod, into a cache outside the tree (make kube-binaries; ten minutes of
// a quiet machine). Where they are is KERF_KUBERNETES, else a folder of the user's cache.
//
//	c, err := realtest.Start(ctx, realtest.Options{Scheduler: true})
//	defer c.Stop()
//	err = c.Create(ctx, manifests)
//	c.Kubeconfig // a path
package realtest
