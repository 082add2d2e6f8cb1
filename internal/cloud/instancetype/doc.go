// Package instancetype asks EC2 which instance types a region has and in which zones they
// are sold, and lays that over a catalogue. What EC2 does not tell (baseline bandwidth,
// branch interfaces) stays the catalogue's.
package instancetype
