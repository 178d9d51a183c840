"""A receiver that verifies with PyPI's `standardwebhooks`, unmodified; by a public key (`whpk_`) with `cryptography`.

The first line of its input is the JSON list of secrets; a POST to /<n> is verified with the nth of them. It answers 200 or 400, and
in JSON what the verifier said. It prints its port when it listens, and ends with its input.
"""

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

import ed25519_verifier

NAME = "standardwebhooks (PyPI)"
secrets = json.loads(sys.stdin.readline())


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave together, at once.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        refusal = None
        secret = secrets[int(self.path[1:])]
        name = ed25519_verifier.NAME if secret.startswith("whpk_") else NAME
        try:
            if name == NAME:
                Webhook(secret).verify(body, dict(self.headers.items()))
            else:
                ed25519_verifier.verify(secret, body, self.headers)
        except (WebhookVerificationError, ed25519_verifier.Refused) as error:
            refusal = str(error)
        answer = json.dumps({"sha256": hashlib.sha256(body).hexdigest(), "refusals": {name: refusal}}).encode()
        self.send_response(200 if refusal is None else 400)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


server = Server(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
