"""Verifies the signature of a webhook from Posthorn, in either format. Copy this file: it needs only the standard library.

`default`:          Webhook-Signature: t=<unix seconds>,v1=<hexadecimal>[,v1=…]
                    over `<t>.<body>`; the key is the secret's whole text, `whsec_` included
Standard Webhooks:  Webhook-Signature: v1,<base64>[ v1,…], with Webhook-Id and Webhook-Timestamp
                    over `<id>.<timestamp>.<body>`; the key is the base64 after `whsec_`, decoded

Both are HMAC-SHA256. While a secret is being rotated there is one `v1` for each live secret: any match is enough.
"""

import base64
import binascii
import hmac
import re
import time

# How far the timestamp may be from this machine's clock: it bounds for how long a recorded request can be replayed.
TOLERANCE_SECONDS = 300


class SignatureError(Exception):
    """The request can't be trusted. Its text says why: for your log, not for the answer."""


def verify_signature(body, headers, secrets, now=None):
    """Returns the timestamp, or raises SignatureError.

    `body` is the bytes as they arrived: parsing and serialising again changes them, and no signature matches then.
    `headers` finds a header whatever its case, as the request's headers do in every framework.
    `secrets` are those you accept: two while you rotate, else one.
    """
    header = (headers.get("Webhook-Signature") or "").strip()
    if not header:
        raise SignatureError("header_missing")
    if header.startswith("t="):
        timestamp, prefix, signatures, encode, key_of = _read_default(header)
    else:
        timestamp, prefix, signatures, encode, key_of = _read_standard(header, headers)
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or not signatures:
        raise SignatureError("header_malformed")
    if abs(int(time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        raise SignatureError("timestamp_skew")

    matches = False
    for secret in secrets:
        key = key_of(secret)
        if not key:
            continue  # Anybody can sign with an empty key.
        expected = encode(hmac.digest(key, prefix.encode() + body, "sha256"))
        for signature in signatures:
            # In constant time, so that the answer's delay tells nothing about the right value.
            matches |= hmac.compare_digest(expected, signature)
    if not matches:
        raise SignatureError("no_match")
    return int(timestamp)


def _read_default(header):
    parts = [part.strip() for part in header.split(",")]
    timestamp = next(part[2:] for part in parts if part.startswith("t="))
    # Other names belong to schemes to come, and are skipped.
    signatures = [part[3:] for part in parts if re.fullmatch(r"v1=[0-9a-f]{64}", part)]
    return timestamp, f"{timestamp}.", signatures, bytes.hex, str.encode


def _read_standard(header, headers):
    message_id = (headers.get("Webhook-Id") or "").strip()
    timestamp = (headers.get("Webhook-Timestamp") or "").strip()
    signatures = [part[3:] for part in header.split(" ") if re.fullmatch(r"v1,[A-Za-z0-9+/]{43}=", part)]
    return timestamp if message_id else "", f"{message_id}.{timestamp}.", signatures, _to_base64, _decode_secret


def _to_base64(digest):
    return base64.b64encode(digest).decode()


def _decode_secret(secret):
    try:
        return base64.b64decode(re.sub("^whsec_", "", secret), validate=True)
    except (binascii.Error, ValueError):
        return b""
