// Package examine gathers what package doctor looks at, from EKS, the API server, the ledger and
// the rest of AWS, and joins it for the plan program. It is apart from app because the clients
// that it needs cost every program that has them some megabytes.
package examine
