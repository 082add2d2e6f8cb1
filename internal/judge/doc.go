// Package judge is being built.
package judge
