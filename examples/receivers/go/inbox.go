package main

import "sync"

const (
	maxDeliveries = 100_000
	maxInvoices   = 10_000
	maxListed     = 1_000
)

// State is the newest event of an invoice.
type State struct {
	Type string `json:"type"`
	At   string `json:"at"`
}

// Counts says what came of one delivery.
type Counts struct {
	Requests    int `json:"requests"`
	SideEffects int `json:"side_effects"`
}

// Inbox holds what this service knows, and which deliveries it has handled. It lives in memory, and forgets on a restart. In your
// own service all of Take is one database transaction:
//
//	INSERT INTO handled (delivery_id) VALUES ($1) ON CONFLICT DO NOTHING  -- no row inserted: handled already
//	UPDATE invoice SET state = $2, state_at = $3 WHERE id = $1 AND state_at < $3
type Inbox struct {
	mutex       sync.Mutex
	deliveries  bounded[Counts]
	newest      bounded[State]
	sideEffects int
}

// NewInbox makes an empty one.
func NewInbox() *Inbox {
	return &Inbox{deliveries: newBounded[Counts](maxDeliveries), newest: newBounded[State](maxInvoices)}
}

// Take handles a delivery, or finds that it was handled: says which.
func (inbox *Inbox) Take(key, eventType, happenedAt, invoiceID string) string {
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	// Webhooks arrive at least once. The key is the same through every retry and redelivery.
	counts, seen := inbox.deliveries.values[key]
	inbox.deliveries.put(key, Counts{Requests: counts.Requests + 1, SideEffects: 1})
	if seen {
		return "handled already"
	}
	inbox.sideEffects++
	if invoiceID == "" || happenedAt == "" {
		return "handled"
	}
	// And in any order: what happened before the state that is known must not undo it. The times are all UTC with
	// milliseconds, so that their text sorts by time.
	if known, ok := inbox.newest.values[invoiceID]; ok && known.At >= happenedAt {
		return "handled, but something newer was known"
	}
	inbox.newest.put(invoiceID, State{Type: eventType, At: happenedAt})
	return "handled"
}

// Stats lists the latest deliveries, and the newest state of each invoice.
func (inbox *Inbox) Stats() map[string]any {
	inbox.mutex.Lock()
	defer inbox.mutex.Unlock()
	return map[string]any{
		"side_effects": inbox.sideEffects,
		"deliveries":   inbox.deliveries.latest(maxListed),
		"newest":       inbox.newest.latest(maxInvoices),
	}
}

// bounded is a map that forgets its oldest keys beyond a limit.
type bounded[V any] struct {
	values map[string]V
	order  []string
	limit  int
}

func newBounded[V any](limit int) bounded[V] {
	return bounded[V]{values: map[string]V{}, limit: limit}
}

func (b *bounded[V]) put(key string, value V) {
	if _, known := b.values[key]; !known {
		b.order = append(b.order, key)
	}
	b.values[key] = value
	if len(b.order) > b.limit {
		delete(b.values, b.order[0])
		b.order = b.order[1:]
	}
}

func (b *bounded[V]) latest(count int) map[string]V {
	found := map[string]V{}
	for _, key := range b.order[max(0, len(b.order)-count):] {
		found[key] = b.values[key]
	}
	return found
}
