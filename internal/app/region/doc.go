// Package region joins what is asked of AWS about a region and an account: what classes
// select, what is sold and at what price, and what was made for classes. It is apart from
// app because the clients that it needs (SSM, IAM, the price list) cost every program that
// has them some megabytes and the start of a process some milliseconds.
package region
