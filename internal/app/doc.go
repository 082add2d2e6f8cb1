// Package app builds what the programs need: it is the only package that sees the
// core, the adapters and the handlers together. Each program is one function here
// and a main of a few lines under functions/.
package app
