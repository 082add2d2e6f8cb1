// Package paging reads lists of AWS page by page, to their end or not at all: half a list
// looks like a whole one that has less in it.
package paging
