// Package image finds the AMIs of an EC2NodeClass: by alias through the parameters that
// AWS publishes for each Kubernetes version, or by SSM parameter, tags, name, id and owner.
// Queries says what is to be asked and what each variant asks of an instance type, Newest
// chooses; both are pure. Resolve asks.
package image
