// Package machines plays what runs on the instances of a fake EC2, and the parts of the
// cloud that see them: user data is read as nodeadm and Bottlerocket read it, a kubelet
// registers the Node that this gives, the cloud-controller-manager labels it and takes its
// taint off, the Node becomes ready, beats, runs pods and lets them go; when the instance
// is terminated its Node is deleted.
//
// It is as strict as they are. A machine whose user data names another cluster, another
// endpoint or another certificate authority does not join; nor does a kubelet that would
// give itself a label it may not. What did not join says why.
package machines
