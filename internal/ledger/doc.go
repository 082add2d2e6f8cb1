// Package ledger owns the durable memory between passes: one DynamoDB table per cluster
// with intents, attempts, the planner's lease, pool usage, and what passes should
// remember. It refuses to own decisions: what becomes of a record is lifecycle's to say.
//
//	Ledger   leases, records, attempts, usage, ...    one implementation of every rule
//	  Table  get, query, conditional write, transact  two: DynamoDB, and Memory, its twin
//
// Every method may be repeated: if the answer to a write is lost, the same call says
// whether the write was applied. What a holder of the planner's lease writes is checked
// against the lease in the same transaction, so a holder that lost it changes nothing.
// Reads that decide are strongly consistent; rows past their expiry do not exist, whether
// they are still stored or not.
//
//	pk            sk            what
//	META          table         table id, schema, cluster, mode
//	LEASE         planner       owner, token, expires, rerun, slot, table, mode
//	NODES         claim         live records
//	CLOSED#<day>  claim         closed records, expire
//	INSTANCE#<i>  claim         the claim of an instance
//	ATTEMPTS      id            attempts; settled ones expire
//	COMMANDS      id            commands; those that are over expire
//	POOLS         pool          what nodes use, by resource
//	OFFERING      type#zone#ct  shortages, interruptions; expire
//	LEARNED       type#img#shp  sizes that nodes turned out to have; expire
//	MOVES         time#workload what was moved; expire
//	DECISION#<d>  time#id       decision log, expires
//	CATALOG       part          compressed catalogue and resolved classes
package ledger
