package ledger

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
)

// fileFormat names the form of a table in a file.
const fileFormat = "kerf-ledger/1"

type file struct {
	Format string    `json:"format"`
	Table  string    `json:"table"`
	Rows   []fileRow `json:"rows"`
}

// fileRow is a row: strings and numbers as JSON has them, bytes in base64, and a body of
// JSON as it is, so that a person can read it.
type fileRow struct {
	PK      string            `json:"pk"`
	SK      string            `json:"sk"`
	Strings map[string]string `json:"strings,omitempty"`
	Numbers map[string]int64  `json:"numbers,omitempty"`
	Bytes   map[string]string `json:"bytes,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
}

// exported are the partitions with one name each; those with a day in their name are asked
// for apart.
var exported = []string{pkAttempts, pkCatalog, pkCommands, pkLearned, pkLease, pkMeta, pkMoves, pkNodes, pkOffering, pkPools}

// Export writes what passes remember as JSON: what --ledger takes as a file. Rows that
// have expired, and the logs of single days but for those asked for (yyyy-mm-dd), are left
// out.
func (l *Ledger) Export(ctx context.Context, w io.Writer, days ...string) error {
	id, err := l.tableID(ctx)
	if err != nil {
		return err
	}
	out := file{Format: fileFormat, Table: id, Rows: []fileRow{}}
	pks := append([]string(nil), exported...)
	for _, d := range days {
		pks = append(pks, pkClosed+d, pkDecision+d)
	}
	for _, pk := range pks {
		items, err := l.query(ctx, pk)
		if err != nil {
			return fmt.Errorf("export %s: %w", pk, err)
		}
		for _, it := range items {
			out.Rows = append(out.Rows, toFile(it))
			if in := it[attrBody].s; pk == pkNodes {
				if more, err := l.instanceRow(ctx, in); err != nil {
					return err
				} else if more != nil {
					out.Rows = append(out.Rows, toFile(more))
				}
			}
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("write the ledger as JSON: %w", err)
	}
	return nil
}

// instanceRow is the row by which the instance of a record is found.
func (l *Ledger) instanceRow(ctx context.Context, body string) (Item, error) {
	var r struct {
		Instance struct {
			ID string `json:"id"`
		} `json:"instance"`
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.Instance.ID == "" {
		return nil, err
	}
	return l.get(ctx, Key{pkInstance + r.Instance.ID, skClaim})
}

func toFile(it Item) fileRow {
	out := fileRow{PK: it.Key().PK, SK: it.Key().SK}
	for name, v := range it {
		switch {
		case name == attrPK || name == attrSK:
		case name == attrBody && v.kind == kindString && json.Valid([]byte(v.s)):
			out.Body = json.RawMessage(v.s)
		case v.kind == kindString:
			out.Strings = with(out.Strings, name, v.s)
		case v.kind == kindNumber:
			out.Numbers = with(out.Numbers, name, v.n)
		default:
			out.Bytes = with(out.Bytes, name, base64.StdEncoding.EncodeToString(v.b))
		}
	}
	return out
}

func with[V any](m map[string]V, name string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[name] = v
	return m
}

// Import reads what Export wrote as a table in memory, with the id of the one that it
// was.
func Import(r io.Reader) (*Memory, error) {
	var in file
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, fmt.Errorf("read the ledger as JSON: %w", err)
	}
	if in.Format != fileFormat {
		return nil, fmt.Errorf("the file has the format %q: want %q, as the export of a ledger has", in.Format, fileFormat)
	}
	out := NewMemory(in.Table)
	for i, row := range in.Rows {
		it := Item{attrPK: S(row.PK), attrSK: S(row.SK)}
		for name, v := range row.Strings {
			it[name] = S(v)
		}
		for name, v := range row.Numbers {
			it[name] = N(v)
		}
		for name, v := range row.Bytes {
			b, err := base64.StdEncoding.DecodeString(v)
			if err != nil {
				return nil, fmt.Errorf("rows[%d].bytes.%s: %w", i, name, err)
			}
			it[name] = B(b)
		}
		if row.Body != nil {
			text, err := compact(row.Body)
			if err != nil {
				return nil, fmt.Errorf("rows[%d].body: %w", i, err)
			}
			it[attrBody] = S(text)
		}
		if err := checkWrite(Write{Key: it.Key(), Put: it}); err != nil {
			return nil, fmt.Errorf("rows[%d]: %w", i, err)
		}
		out.store(it.Key(), it)
	}
	return out, nil
}

// compact undoes the indentation that the file gave a body.
func compact(raw json.RawMessage) (string, error) {
	var buf bytes.Buffer
	err := json.Compact(&buf, raw)
	return buf.String(), err
}
