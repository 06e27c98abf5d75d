"""Verifies one signed envelope with nothing but a public key and the Python standard library.

Goal: somebody who trusts none of our code can check a receipt.
Method: decode, rebuild the signed bytes, check the Ed25519 equation, then compare every digest with the record inside.

Usage: python3 verify_envelope.py <file> <public key>. Prints the subject; exits 1 if anything does not fit.
"""

import base64
import hashlib
import json
import sys

from check import canonical, digest, encode_envelope, verify


def check_envelope(envelope, public_key):
    public = base64.urlsafe_b64decode(public_key.removeprefix("ed25519:") + "=")
    payload = base64.b64decode(envelope["payload"], validate=True)
    message = encode_envelope(envelope["payloadType"], payload)
    keyid = digest("effectmatch/receipt-key/v1", public_key)
    signature = next(s for s in envelope["signatures"] if s["keyid"] == keyid)
    assert verify(public, message, base64.b64decode(signature["sig"], validate=True)), "the signature does not fit"
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    statement = json.loads(payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    predicate = statement["predicate"]
    record = predicate.get("terminal", predicate)
    [subject] = statement["subject"]
    text = canonical(record)
    assert subject["digest"] == {"sha256": hashlib.sha256(text.encode()).hexdigest()}, "the subject is another record"
    if record is not predicate:
        assert subject["name"] == record["occurrence"]
        assert predicate["digest"] == digest("effectmatch/terminal/v1", text)
        assert predicate["lineage"] == record["lineage"]
    return subject["name"]


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            print(check_envelope(json.loads(line), sys.argv[2]))
