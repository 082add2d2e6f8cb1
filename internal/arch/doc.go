// Package arch keeps the import rules: it reads the source of the module and says
// where a package knows what it must not know.
//
//	core      decides      -> standard library without I/O, clock, chance; other core packages
//	adapter   talks        -> core data (never what decides), third-party libraries
//	middle    applies      -> core, and interfaces of its own for what adapters do
//	wiring    joins        -> everything in internal
//	checking  tests        -> everything in internal; nothing but tests imports it
//	functions start        -> internal/app and the Lambda library
//
// It owns the table of packages and the rules about them. It is used by tests and by
// scripts/lint alone.
package arch
