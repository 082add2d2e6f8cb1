// Package handler answers the events of the functions: decode, snapshot, core,
// answer. One file per function.
//
// It owns the payloads and the order of the steps. It reads no cluster and no
// file itself: what it needs from the outside (how objects are read, the settings,
// the clock) are functions that package app hands in.
package handler
