// Package nodeclass is an EC2NodeClass as those who launch need it: the whole spec, typed
// (Parse), what its selectors resolved to (Resolved), and the status that follows from
// that (StatusOf). It is pure and knows no AWS client: network, image and profile resolve,
// this package judges what they found.
package nodeclass
