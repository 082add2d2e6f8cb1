// Package config turns what people set (environment variables of a function,
// --set and --settings of the command line, context keys of the CDK app) into
// one validated value.
//
// One table (Table) names every key with its default, its meaning and its
// parser; docs/config.md is generated from it. Names are Karpenter's where
// Karpenter has them, with the same values; ours start with KERF_. All problems
// are reported at once. An unknown key is an error that names the nearest known
// one: a setting that is silently not applied is worse than none.
//
// The package reads no environment and no file by itself: callers hand both in.
package config
