package ledger

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// partBytes is what one row of a part holds: below 400 KB with all its names.
	partBytes = 350 * 1024
	// keepParts is how long the rows of a part that was replaced stay readable for those
	// who have read which they are.
	keepParts = time.Hour
	// maxPart is what a part may be when it is unpacked.
	maxPart = 64 << 20

	attrHash  = "hash"
	attrParts = "parts"
	attrData  = "data"
	attrTime  = "at"
)

// PutPart stores a part, whole: who reads meanwhile gets the old or the new one. Data of
// any size is compressed and cut into rows. An older generation does not replace a newer.
func (l *Ledger) PutPart(ctx context.Context, p Part) error {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(p.Data); err != nil {
		return fmt.Errorf("compress the part %s: %w", p.Name, err)
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("compress the part %s: %w", p.Name, err)
	}
	sum := sha256.Sum256(p.Data)
	hash := hex.EncodeToString(sum[:16])
	parts := int64(0)
	for chunk := range slices.Chunk(buf.Bytes(), partBytes) {
		key := Key{pkCatalog, partKey(p.Name, hash, parts)}
		it := Item{attrPK: S(key.PK), attrSK: S(key.SK), attrData: B(slices.Clone(chunk))}
		// Named by content, so that writing it again changes nothing, and takes away the
		// expiry of one that comes back.
		if _, err := l.write(ctx, Write{Key: key, Put: it}); err != nil {
			return fmt.Errorf("store the part %s: %w", p.Name, err)
		}
		parts++
	}
	var oldHash string
	var oldParts int64
	superseded := false
	err := l.update(ctx, Key{pkCatalog, p.Name}, func(it Item) (Item, error) {
		if superseded = it[attrGeneration].n > p.Generation; superseded {
			oldHash, oldParts = hash, parts // what was just stored is nobody's
			if it[attrHash].s == hash {
				oldParts = 0
			}
			return nil, nil
		}
		oldHash, oldParts = it[attrHash].s, it[attrParts].n
		return Item{
			attrPK: S(pkCatalog), attrSK: S(p.Name), attrHash: S(hash), attrParts: N(parts),
			attrGeneration: N(p.Generation), attrTime: N(l.Now().UnixMilli()),
		}, nil
	})
	if err != nil {
		return fmt.Errorf("store the part %s: %w", p.Name, err)
	}
	if oldHash == hash && !superseded {
		return nil
	}
	for n := range oldParts {
		key := Key{pkCatalog, partKey(p.Name, oldHash, n)}
		_, err := l.write(ctx, Write{Key: key, Set: expires(Item{}, l.Now().Add(keepParts)), When: Exists(attrPK)})
		if _, gone := errors.AsType[*ConditionError](err); err != nil && !gone {
			return fmt.Errorf("let go of the former part %s: %w", p.Name, err)
		}
	}
	return nil
}

const attrGeneration = "gen"

// partKey is the sort key of a row of a part.
func partKey(name, hash string, n int64) string { return fmt.Sprintf("%s#%s#%03d", name, hash, n) }

// errPartGone says that a part was replaced while it was read.
var errPartGone = errors.New("the part was replaced meanwhile")

// Part reads a part; ok is false when there is none.
func (l *Ledger) Part(ctx context.Context, name string) (p Part, ok bool, err error) {
	for range l.Tries {
		if p, ok, err = l.part(ctx, name); !errors.Is(err, errPartGone) {
			break
		}
	}
	if err != nil {
		return p, false, fmt.Errorf("read the part %s: %w", name, err)
	}
	return p, ok, nil
}

func (l *Ledger) part(ctx context.Context, name string) (Part, bool, error) {
	head, err := l.get(ctx, Key{pkCatalog, name})
	if err != nil || head == nil {
		return Part{}, false, err
	}
	hash := head[attrHash].s
	var packed []byte
	for n := range head[attrParts].n {
		it, err := l.get(ctx, Key{pkCatalog, partKey(name, hash, n)})
		if err != nil {
			return Part{}, false, err
		}
		if it == nil {
			return Part{}, false, errPartGone
		}
		packed = append(packed, it[attrData].b...)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return Part{}, false, err
	}
	data, err := io.ReadAll(io.LimitReader(z, maxPart+1))
	if err != nil {
		return Part{}, false, err
	}
	if len(data) > maxPart {
		return Part{}, false, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxPart)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:16]) != hash {
		return Part{}, false, errors.New("its rows do not have the hash that it has on record")
	}
	return Part{Name: name, Data: data, Generation: head[attrGeneration].n, At: time.UnixMilli(head[attrTime].n)}, true, nil
}

// Generation is the generation of a part, without reading it; ok is false when there is
// none.
func (l *Ledger) Generation(ctx context.Context, name string) (generation int64, ok bool, err error) {
	head, err := l.get(ctx, Key{pkCatalog, name})
	if err != nil {
		return 0, false, fmt.Errorf("read the generation of the part %s: %w", name, err)
	}
	return head[attrGeneration].n, head != nil, nil
}
