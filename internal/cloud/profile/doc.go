// Package profile gives a NodeClass its instance profile: the one it names, or one that is
// made for its role. A profile's name follows from cluster, class and role, so a changed
// role is another profile, and the old one stays until no node needs it.
package profile
