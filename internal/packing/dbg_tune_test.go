package packing
