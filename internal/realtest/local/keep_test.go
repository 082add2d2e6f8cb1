//go:build local

package local

import "flag"

var keep = flag.Bool("keep", false, "stay up until it is interrupted")
