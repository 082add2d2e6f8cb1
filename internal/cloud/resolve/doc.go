// Package resolve asks everything that an EC2NodeClass selects: network, images, profile,
// reservations, each on its own, so that what cannot be answered leaves the rest known and
// a broken class leaves the others alone. The answers become a status in nodeclass.
package resolve
