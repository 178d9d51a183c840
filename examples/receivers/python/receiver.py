"""A receiver for Posthorn's webhooks, with the standard library only.

Usage: WEBHOOK_SECRET=whsec_… python3 receiver.py

  WEBHOOK_SECRET  the endpoint's secret, from the answer that created it; several, separated by commas, while you rotate
  PORT            where to listen, default 8410; 0 takes a free one
  HOST            default 127.0.0.1

Deliveries go to POST /hook, handshakes to OPTIONS /hook. From this machine: GET /stats.
"""

import json
import os
import re
import signal
import socket
import sys
import threading
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from inbox import Inbox
from verify_signature import SignatureError, verify_signature

MAX_BODY_BYTES = 1024 * 1024
ALLOWED_REQUESTS_PER_MINUTE = 6_000


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def __init__(self, address, secrets):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Handler)
        self.secrets = secrets
        self.inbox = Inbox()
        self.counts = {"requests": 0, "verified": 0, "rejected": 0}
        self.lock = threading.Lock()

    def count(self, name):
        with self.lock:
            self.counts[name] += 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30  # Seconds; a connection that is silent for longer is closed.

    def do_POST(self):
        if self.path.split("?")[0] != "/hook":
            return self.answer(404, "Not found", close=True)
        self.server.count("requests")
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", length) or "Transfer-Encoding" in self.headers:
            return self.answer(411, "Content-Length is required", close=True)
        body = self.rfile.read(min(int(length), 4 * MAX_BODY_BYTES))
        if int(length) > MAX_BODY_BYTES:
            return self.answer(413, "The body is too large", close=True)

        # Verify the bytes as they came. Nothing in them is to be trusted, or even parsed, before.
        try:
            verify_signature(body, self.headers, self.server.secrets)
        except SignatureError as error:
            self.server.count("rejected")
            log(f"rejected a request: {error}")
            return self.answer(401, "The signature is not valid")
        self.server.count("verified")
        status, text = self.receive(body)
        self.answer(status, text)

    def receive(self, body):
        """What to answer to a body that is verified."""
        try:
            # Numbers as they were sent, whatever their size; bytes that aren't UTF-8 are an error.
            message = json.loads(body.decode("utf-8"), parse_int=Decimal, parse_float=Decimal)
        except ValueError:
            return 400, "The body is not a delivery"
        event_type, data = text_of(message, "type"), message.get("data") if isinstance(message, dict) else None
        if event_type == "webhook.verification" and text_of(data, "challenge"):
            log("answered a verification challenge")
            return 200, data["challenge"]
        if event_type == "webhook.ping":
            return 200, "ok"
        if text_of(message, "specversion"):  # A CloudEvent.
            source, event_id = text_of(message, "source"), text_of(message, "id")
            key = f"{source} {event_id}" if source and event_id else None
            happened_at = text_of(message, "time")
        else:
            key, happened_at = text_of(message, "delivery_id"), text_of(message, "created_at")
        if not event_type or not key:
            return 400, "The body is not a delivery"
        # Store it before the answer: after a 2xx it isn't sent again. What takes longer comes later, in a job of its own.
        outcome = self.server.inbox.take(key, event_type, happened_at, text_of(data, "invoice_id"))
        log(f"{event_type} {key}: {outcome}")
        return 200, "ok"

    def do_OPTIONS(self):
        """CloudEvents' HTTP webhooks, section 4: a sender asks before it sends. The signature still decides who is believed."""
        headers = {"Allow": "OPTIONS, POST"}
        origin = self.headers.get("WebHook-Request-Origin", "")
        if re.fullmatch(r"[A-Za-z0-9.:\[\]-]{1,255}", origin):
            log(f"allowed {origin} to send")
            headers["WebHook-Allowed-Origin"] = origin
            headers["WebHook-Allowed-Rate"] = str(ALLOWED_REQUESTS_PER_MINUTE)
        self.answer(204, "", headers, close=True)

    def do_GET(self):
        if self.path != "/stats" or not re.match(r"127\.|::1$|::ffff:127\.", self.client_address[0]):
            return self.answer(404, "Not found", close=True)
        stats = json.dumps({**self.server.counts, **self.server.inbox.stats()})
        self.answer(200, stats + "\n", {"Content-Type": "application/json"}, close=True)

    def answer(self, status, text, headers=None, close=False):
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        for name, value in {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        if close:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """`log` says what matters."""


def text_of(value, name):
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None


def log(line):
    print(line.encode("ascii", "backslashreplace").decode(), flush=True)


def main():
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(__doc__, end="")
        return 0
    secrets = [secret for secret in re.split(r"[\s,]+", os.environ.get("WEBHOOK_SECRET", "")) if secret]
    port, host = os.environ.get("PORT") or "8410", os.environ.get("HOST") or "127.0.0.1"
    if not secrets:
        print("WEBHOOK_SECRET is not set", file=sys.stderr)
        return 2
    if not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        print("PORT must be a number from 0 to 65535", file=sys.stderr)
        return 2
    try:
        server = Server((host, int(port)), secrets)
    except OSError as error:
        print(f"Can't listen on {host}, port {port}: {error}", file=sys.stderr)
        return 1
    log(f"Listening on http://{f'[{host}]' if ':' in host else host}:{server.server_port}/hook")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
