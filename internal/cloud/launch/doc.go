// Package launch turns a planned launch into what is asked of EC2, and EC2's answer into
// what came of it. It is pure and knows no AWS client, so that an attempt can be written
// down before it is made, repeated byte for byte, and judged anywhere:
//
//	Plan (claims, offers, class) -> Templates + Request -> bytes -> (EC2) -> Answer -> Outcome
//
// template and fleet do the calls.
package launch
