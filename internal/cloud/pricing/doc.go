// Package pricing reads what machines cost and which capacity is reserved: on-demand list
// prices, spot prices, capacity reservations, and where types are offered. Apply lays
// prices over a catalogue, Pack and Unpack make the compressed parts that are kept of it;
// these are pure.
package pricing
