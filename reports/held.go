package reports

import (
	"fmt"
	"unsafe"
)

// What the records of one file may make a reader hold. A text that unpacks
// from a few kilobytes can ask for any amount.
const (
	maxRecords = 1 << 18
	maxHeld    = 512 << 20 // bytes in memory: 67 million samples
)

// Held counts what the records of a file take in memory.
type Held struct{ records, bytes int }

// Add counts one record more; beyond the bounds it is an error.
func (h *Held) Add(r *Result) error {
	if h.records++; h.records > maxRecords {
		return fmt.Errorf("more than %d records: give it in parts", maxRecords)
	}
	if h.bytes += r.held(); h.bytes > maxHeld {
		return fmt.Errorf("record %d is beyond %d MiB of samples and texts in memory: give it in parts", h.records, maxHeld>>20)
	}
	return nil
}

// entry is what a map takes for each of its pairs, about.
const entry = 64

// held is about what a record takes in memory, bytes.
func (r *Result) held() int {
	n := int(unsafe.Sizeof(*r)) + 8*(cap(r.Seconds)+cap(r.RankP50)) + cap(r.Pairs)*int(unsafe.Sizeof(Pair{}))
	for _, s := range [...]string{r.Run, r.Verb, r.Op, r.Algorithm, r.Engine, r.Scope, r.Link, r.Memory, r.Dtype, r.Redop, r.Mode, r.Source, r.Error} {
		n += len(s)
	}
	n += heldTexts(r.Notes) + heldTexts(r.Hosts)
	for _, m := range [...]map[string]string{r.Config, r.Effective} {
		for k, v := range m {
			n += entry + len(k) + len(v)
		}
	}
	for _, c := range r.Counters {
		n += int(unsafe.Sizeof(c)) + len(c.Name) + len(c.Most)
	}
	if r.Limit != nil {
		n += len(r.Limit.Name) + len(r.Limit.How)
	}
	if r.Verbs != nil {
		n += heldTexts(r.Verbs.Rails) + heldTexts(r.Verbs.Attributes)
	}
	if r.Stated != nil {
		n += int(unsafe.Sizeof(*r.Stated)) + len(r.Stated.Time)
	}
	if r.NVLink != nil {
		n += len(r.NVLink.Where)
	}
	return n
}

func heldTexts(texts []string) int {
	n := cap(texts) * int(unsafe.Sizeof(""))
	for _, s := range texts {
		n += len(s)
	}
	return n
}
