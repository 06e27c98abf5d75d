"""Recomputes every golden vector in this folder with nothing but the Python standard library.

Goal: another implementation, written from the rules alone, arrives at the same bytes.
Method: canonical text, digests, seals, ids and signatures are computed here again and compared with the files.

Usage: python3 check.py. Exits 1 and names what differs if anything does.
After a deliberate change of a record, `python3 check.py --write` fills in text, digest, seal and signature again.
"""

import base64
import hashlib
import hmac
import json
import math
import re
import sys
from pathlib import Path

SALT = b"effectmatch/keyring/v1"


# Canonical text (RFC 8785): keys by UTF-16 code units, numbers as ECMAScript prints them, the shortest escapes.

ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def canonical(value):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, int):
        return canonical_number(float(value)) if abs(value) >= 2**53 else str(value)
    if isinstance(value, float):
        return canonical_number(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item) for item in value) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
    return "{" + ",".join(canonical_string(key) + ":" + canonical(value[key]) for key in keys) + "}"


def canonical_string(text):
    def escape(match):
        char = match.group(0)
        return ESCAPES.get(char) or "\\u%04x" % ord(char)

    return '"' + re.sub(r'["\\\x00-\x1f]', escape, text) + '"'


def canonical_number(number):
    """Number::toString of ECMA-262: the shortest digits, exponents only below 1e-6 and from 1e21 on."""
    assert math.isfinite(number)
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole.lstrip("0")) + int(exponent or 0)
    if not whole.strip("0"):
        point = int(exponent or 0) - (len(fraction) - len(fraction.lstrip("0")))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return sign + digits[:point] + "." + digits[point:]
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    power = point - 1
    tail = ("+" if power >= 0 else "-") + str(abs(power))
    return sign + digits[0] + ("." + digits[1:] if count > 1 else "") + "e" + tail


# Digests and seals.


def digest(domain, text):
    return hashlib.sha256((domain + "\n" + text).encode()).hexdigest()


def derive(secret, purpose):
    """HKDF-SHA-256 (RFC 5869), one block of output."""
    extracted = hmac.new(SALT, secret, hashlib.sha256).digest()
    return hmac.new(extracted, purpose.encode() + b"\x01", hashlib.sha256).digest()


def mac(secret, purpose, domain, text):
    return hmac.new(derive(secret, purpose), (domain + "\n" + text).encode(), hashlib.sha256).hexdigest()


# Ed25519 (RFC 8032), plain and slow: enough to check a few signatures.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def recover_x(y, odd):
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    assert (x * x - square) % P == 0, "not a point of the curve"
    return P - x if x & 1 != odd else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (recover_x(BASE_Y, 0), BASE_Y)


def add(a, b):
    (ax, ay), (bx, by) = a, b
    product = D * ax * bx * ay * by
    x = (ax * by + bx * ay) * pow(1 + product, P - 2, P)
    y = (ay * by + ax * bx) * pow(1 - product, P - 2, P)
    return (x % P, y % P)


def multiply(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def encode(point):
    return (point[1] | (point[0] & 1) << 255).to_bytes(32, "little")


def sign(seed, message):
    hashed = hashlib.sha512(seed).digest()
    secret = int.from_bytes(hashed[:32], "little") & ((1 << 254) - 8) | (1 << 254)
    public = encode(multiply(secret, BASE))
    nonce = int.from_bytes(hashlib.sha512(hashed[32:] + message).digest(), "little") % L
    commitment = encode(multiply(nonce, BASE))
    challenge = int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little") % L
    return public, commitment + ((nonce + challenge * secret) % L).to_bytes(32, "little")


def verify(public, message, signature):
    """Whether the signature is the key's, by the equation of RFC 8032 alone: no secret is needed."""
    if len(signature) != 64:
        return False
    commitment, scalar = signature[:32], int.from_bytes(signature[32:], "little")
    challenge = int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little") % L
    left, right = multiply(scalar, BASE), multiply(challenge, decode(public))
    return scalar < L and left == add(decode(commitment), right)


def decode(data):
    number = int.from_bytes(data, "little")
    y = number & ((1 << 255) - 1)
    return (recover_x(y, number >> 255), y)


def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


# The files.


def describe(vector, keys):
    """What follows from the record of a vector and the keys."""
    domain = "effectmatch/%s/v%d" % (vector["kind"], vector["version"])
    text = canonical(vector["record"])
    key = vector["seal"]["key"]
    secret = bytes.fromhex(keys["generations"][key])
    facts = {
        "text": text,
        "digest": digest(domain, text),
        "seal": {"key": key, "mac": mac(secret, vector["kind"], domain, text)},
    }
    if "signature" in vector:
        _, signature = sign(bytes.fromhex(keys["approverSeed"]), (domain + "\n" + text).encode())
        facts["signature"] = base64url(signature)
    return facts


def encode_envelope(payload_type, payload):
    """The bytes that a DSSE signature covers."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def describe_envelope(vector, keys):
    """What follows from the record that an envelope carries and the generation that signs it."""
    seed = derive(bytes.fromhex(keys["generations"][vector["key"]]), "receipt-key/v1")
    record = vector["record"]
    text = canonical(record)
    if "throughSeq" in record:
        name, predicate_type, predicate = "checkpoint-%d" % record["throughSeq"], "urn:effectmatch:checkpoint:v1", record
    elif "would" in record:
        name, predicate_type = record["occurrence"], "urn:effectmatch:shadow:v1"
        predicate = {"shadow": record, "position": vector["position"]}
    else:
        name, predicate_type = record["occurrence"], "urn:effectmatch:receipt:v1"
        predicate = {
            "version": 1,
            "terminal": record,
            "digest": digest("effectmatch/terminal/v1", text),
            "lineage": record["lineage"],
            "position": vector["position"],
        }
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": hashlib.sha256(text.encode()).hexdigest()}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    }
    payload_type = "application/vnd.in-toto+json"
    payload = canonical(statement).encode()
    public, signature = sign(seed, encode_envelope(payload_type, payload))
    public_key = "ed25519:" + base64url(public)
    keyid = digest("effectmatch/receipt-key/v1", public_key)
    return {
        "publicKey": public_key,
        "envelope": {
            "payloadType": payload_type,
            "payload": base64.b64encode(payload).decode(),
            "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode()}],
        },
    }


def check_derivations(content, keys):
    public, _ = sign(bytes.fromhex(keys["approverSeed"]), b"")
    approver = content["approverKey"]
    yield "public key", "ed25519:" + base64url(public), approver["publicKey"]
    yield "key id", digest("effectmatch/approver-key/v1", approver["publicKey"]), approver["id"]
    for case in content["occurrences"]:
        found = digest("effectmatch/occurrence/v1", canonical(case["source"]))
        yield "occurrence", "occ_" + found[:40], case["id"]
    for case in content["values"]:
        secret = bytes.fromhex(keys["generations"][case["key"]])
        text = canonical([case["target"], case["column"], case["value"]])
        yield "value", mac(secret, "value", "effectmatch/value/v1", text), case["digest"]


def main(folder, write):
    keys = json.loads((folder / "keys.json").read_text("utf-8"))
    results = []
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text("utf-8"))
        if file.name == "derivations.json":
            results += [(file.name, *result) for result in check_derivations(content, keys)]
        elif file.name != "keys.json":
            for vector in content:
                facts = (describe_envelope if file.name == "envelopes.json" else describe)(vector, keys)
                results += [(vector["name"], what, facts[what], vector[what]) for what in facts]
                vector.update(facts)
            if write:
                file.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    wrong = [(name, what) for name, what, found, expected in results if found != expected]
    for name, what in wrong:
        print("%s: %s differs%s" % (name, what, " and was written" if write else ""))
    print("%d values compared, %d differ" % (len(results), len(wrong)))
    return 1 if (wrong and not write) or not results else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent, "--write" in sys.argv[1:]))
