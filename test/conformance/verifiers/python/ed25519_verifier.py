"""Follows the text of Standard Webhooks with PyPI's `cryptography`, since its own library knows HMAC only."""

import base64
import binascii
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NAME = "cryptography (PyPI)"
TOLERANCE_SECONDS = 300


class Refused(Exception):
    pass


def verify(public_key, body, headers):
    headers = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp, signatures = (
            headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")
        )
    except KeyError:
        raise Refused("missing required headers") from None
    age = time.time() - int(timestamp)
    if abs(age) > TOLERANCE_SECONDS:
        raise Refused("message timestamp too old" if age > 0 else "message timestamp too new")
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key.removeprefix("whpk_"), validate=True))
    content = f"{message_id}.{timestamp}.".encode() + body
    for part in signatures.split(" "):
        version, _, text = part.partition(",")
        if version != "v1a":
            continue
        try:
            return key.verify(base64.b64decode(text, validate=True), content)
        except (InvalidSignature, binascii.Error):
            continue
    raise Refused("no matching signature found")
