package snapshot

// Price is micro-dollars per hour.
type Price = int64
