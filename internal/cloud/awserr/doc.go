// Package awserr tells the errors of AWS apart by what is to be done about them. It reads
// codes, and texts where AWS puts different things under one code; nobody above looks at
// either.
package awserr
