// Package template keeps launch templates in EC2: it makes those that a request names and
// are not there yet, and collects those that nobody needs any more. What is in a template
// is decided in launch; here it is only said in the SDK's words.
package template
