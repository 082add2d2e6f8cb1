package pricing

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"kerf.sh/kerf/internal/catalog"
)

// Apply is a catalogue with present prices; the one given is not changed. A nil map says
// that the prices could not be read: then those of the catalogue stay. onDemand prices are
// laid over the table, types without one keep theirs. spot is everything there is: a type
// and zone that it does not have is not offered as spot, and one that only it has is.
func Apply(c *catalog.Catalog, onDemand map[string]int64, spot map[string]map[string]int64) *catalog.Catalog {
	out := &catalog.Catalog{Region: c.Region, Date: c.Date, Source: c.Source, Zones: slices.Clone(c.Zones), Commitments: c.Commitments, Types: slices.Clone(c.Types)}
	ids := map[string]string{}
	for i := range c.Types {
		for _, o := range c.Types[i].Offerings {
			ids[o.Zone] = o.ZoneID
		}
	}
	for i := range out.Types {
		t := &out.Types[i]
		t.Offerings = slices.Clone(t.Offerings)
		seen := map[string]bool{}
		for k := range t.Offerings {
			o := &t.Offerings[k]
			switch o.CapacityType {
			case catalog.OnDemand:
				if p := onDemand[t.Name]; p > 0 {
					o.Available = o.Available || o.Price == 0 // it was missing its price only
					o.Price, o.Estimated = p, false
				}
			case catalog.Spot:
				if spot == nil {
					continue
				}
				seen[o.Zone] = true
				o.Estimated = false
				if p, ok := spot[t.Name][o.Zone]; ok {
					o.Price, o.Available = p, true
				} else {
					o.Available = false
				}
			}
		}
		for _, zone := range slices.Sorted(maps.Keys(spot[t.Name])) {
			if !seen[zone] && slices.Contains(out.Zones, zone) {
				t.Offerings = append(t.Offerings, catalog.Offering{Zone: zone, ZoneID: ids[zone], CapacityType: catalog.Spot, Price: spot[t.Name][zone], Available: true})
			}
		}
		slices.SortStableFunc(t.Offerings, func(a, b catalog.Offering) int {
			if a.Zone != b.Zone {
				return bytes.Compare([]byte(a.Zone), []byte(b.Zone))
			}
			return bytes.Compare([]byte(a.CapacityType), []byte(b.CapacityType))
		})
	}
	return out
}

// PartBytes is how large a compressed part may be: a row of the ledger takes 400 KB with
// its names.
const PartBytes = 350_000

// Part is one piece of something compressed. All parts of one whole have the same Hash.
type Part struct {
	Index, Count int
	Hash         string // of the whole, uncompressed
	Data         []byte
}

// Pack compresses data and cuts it into parts. Equal data, equal parts.
func Pack(data []byte) ([]Part, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	sum := sha256.Sum256(data)
	var out []Part
	for chunk := range slices.Chunk(b.Bytes(), PartBytes) {
		out = append(out, Part{Index: len(out), Hash: hex.EncodeToString(sum[:]), Data: chunk})
	}
	for i := range out {
		out[i].Count = len(out)
	}
	return out, nil
}

// unpackedLimit bounds what parts may grow to.
const unpackedLimit = 256 << 20

// Unpack puts parts together again, in any order. A missing part, one of another whole and
// damaged data are errors.
func Unpack(parts []Part) ([]byte, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("put parts together: there is none")
	}
	sorted := slices.Clone(parts)
	slices.SortFunc(sorted, func(a, b Part) int { return a.Index - b.Index })
	var all []byte
	for i, p := range sorted {
		if p.Index != i || p.Count != len(sorted) || p.Hash != sorted[0].Hash {
			return nil, fmt.Errorf("put parts together: part %d of %d with %d parts of %.8s does not belong to %.8s", p.Index, p.Count, len(sorted), p.Hash, sorted[0].Hash)
		}
		all = append(all, p.Data...)
	}
	r, err := gzip.NewReader(bytes.NewReader(all))
	if err != nil {
		return nil, fmt.Errorf("put parts together: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(r, unpackedLimit+1))
	if err != nil {
		return nil, fmt.Errorf("put parts together: %w", err)
	}
	if len(data) > unpackedLimit {
		return nil, fmt.Errorf("put parts together: more than %d bytes", unpackedLimit)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != sorted[0].Hash {
		return nil, fmt.Errorf("put parts together: the hash of the whole is not %.8s", sorted[0].Hash)
	}
	return data, nil
}
