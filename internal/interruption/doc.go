// Package interruption reads what AWS says about instances that will go: the five kinds of
// events that EventBridge brings. It decides nothing about them, and no body, whatever its
// shape, is more than a notice, a thing to ignore, or a thing that cannot be read.
package interruption
