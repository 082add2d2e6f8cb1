// Package daypage renders a simulated day as text and as one self-contained HTML page: no
// request to anywhere, light and dark as the reader's system says, readable on a phone. The
// page works without its script, which only reads the curves out where one points at them.
//
//	Day{Samples, Moves, Interruptions, Chapters} -> HTML, Text
package daypage
