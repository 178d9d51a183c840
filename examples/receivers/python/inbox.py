"""What this service knows, and which deliveries it has handled."""

import threading
from collections import OrderedDict

MAX_DELIVERIES = 100_000
MAX_INVOICES = 10_000


class Inbox:
    """Lives in memory, and forgets on a restart. In your own service all of `take` is one database transaction:

        INSERT INTO handled (delivery_id) VALUES (%s) ON CONFLICT DO NOTHING  -- no row inserted: handled already
        UPDATE invoice SET state = %s, state_at = %s WHERE id = %s AND state_at < %s
    """

    def __init__(self):
        self._lock = threading.Lock()
        self._requests = OrderedDict()
        self._newest = OrderedDict()
        self._side_effects = 0

    def take(self, key, event_type, happened_at, invoice_id):
        """Handles a delivery, or finds that it was handled: says which."""
        with self._lock:
            # Webhooks arrive at least once. The key is the same through every retry and redelivery.
            self._requests[key] = self._requests.pop(key, 0) + 1
            if self._requests[key] > 1:
                return "handled already"
            _keep_newest(self._requests, MAX_DELIVERIES)
            self._side_effects += 1
            if invoice_id is None or happened_at is None:
                return "handled"
            # And in any order: what happened before the state that is known must not undo it. The times are all UTC with
            # milliseconds, so that their text sorts by time.
            known = self._newest.get(invoice_id)
            if known and known["at"] >= happened_at:
                return "handled, but something newer was known"
            self._newest.pop(invoice_id, None)
            self._newest[invoice_id] = {"type": event_type, "at": happened_at}
            _keep_newest(self._newest, MAX_INVOICES)
            return "handled"

    def stats(self):
        with self._lock:
            latest = list(self._requests.items())[-1_000:]
            return {
                "side_effects": self._side_effects,
                "deliveries": {key: {"requests": count, "side_effects": 1} for key, count in latest},
                "newest": dict(self._newest),
            }


def _keep_newest(entries, limit):
    while len(entries) > limit:
        entries.popitem(last=False)
