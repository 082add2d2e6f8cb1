// Package userdata writes what a node reads at its first boot, per AMI family, and merges
// it with what the NodeClass brings. It is pure: equal input, equal bytes, because launch
// templates are named by their content.
//
// Our part always wins: it stands last where the family runs parts in order (AL2, AL2023),
// and overwrites keys where the family takes one document (Bottlerocket). Custom is not
// touched.
package userdata
