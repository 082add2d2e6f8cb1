// Package network resolves what the selectors of an EC2NodeClass say about the network:
// subnets with their free addresses, security groups, a placement group. Which subnet of a
// zone a launch uses is decided in nodeclass.ZoneSubnets, with what is in flight.
package network
