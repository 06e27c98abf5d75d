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


# ECDSA over P-256 (FIPS 186-5) with the deterministic nonce of RFC 6979, for passkeys.

P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1
N256 = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G256 = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


def add256(a, b):
    if a is None or b is None:
        return a or b
    (ax, ay), (bx, by) = a, b
    if ax == bx and (ay + by) % P256 == 0:
        return None
    slope = (3 * ax * ax - 3) * pow(2 * ay, -1, P256) if a == b else (by - ay) * pow(bx - ax, -1, P256)
    x = (slope * slope - ax - bx) % P256
    return (x, (slope * (ax - x) - ay) % P256)


def multiply256(scalar, point):
    result = None
    while scalar:
        if scalar & 1:
            result = add256(result, point)
        point = add256(point, point)
        scalar >>= 1
    return result


def nonce256(secret, hashed):
    key, value = b"\x00" * 32, b"\x01" * 32
    known = secret.to_bytes(32, "big") + (int.from_bytes(hashed, "big") % N256).to_bytes(32, "big")
    for separator in (b"\x00", b"\x01"):
        key = hmac.new(key, value + separator + known, hashlib.sha256).digest()
        value = hmac.new(key, value, hashlib.sha256).digest()
    value = hmac.new(key, value, hashlib.sha256).digest()
    nonce = int.from_bytes(value, "big")
    assert 0 < nonce < N256
    return nonce


def der_integer(number):
    data = number.to_bytes(number.bit_length() // 8 + 1, "big")
    return b"\x02" + bytes([len(data)]) + data


def sign256(seed, message):
    secret = int.from_bytes(seed, "big") % N256
    x, y = multiply256(secret, G256)
    hashed = hashlib.sha256(message).digest()
    nonce = nonce256(secret, hashed)
    r = multiply256(nonce, G256)[0] % N256
    s = pow(nonce, -1, N256) * (int.from_bytes(hashed, "big") + r * secret) % N256
    body = der_integer(r) + der_integer(s)
    return x.to_bytes(32, "big") + y.to_bytes(32, "big"), b"\x30" + bytes([len(body)]) + body


def describe_passkey(vector, _keys):
    """A passkey's public half, and its assertion over the digest of a record that names it."""
    kind = next(kind for kind in ("license", "decline", "resolution") if kind in vector)
    signer = sign256 if vector["algorithm"] == "es256" else sign
    seed = bytes.fromhex(vector["seed"])
    point, _ = signer(seed, b"")
    public_key = "passkey:%s:%s:%s@%s" % (vector["algorithm"], base64url(point), vector["credential"], vector["origin"])
    key = digest("effectmatch/approver-key/v1", public_key)
    record = {**vector[kind], "key": key}
    challenge = bytes.fromhex(digest("effectmatch/%s/v1" % kind, canonical(record)))
    host = re.fullmatch(r"https?://([^:/]+)(:[0-9]+)?", vector["origin"]).group(1)
    data = hashlib.sha256(host.encode()).digest() + bytes([vector["flags"]]) + vector["counter"].to_bytes(4, "big")
    client = json.dumps(
        {"type": "webauthn.get", "challenge": base64url(challenge), "origin": vector["origin"], "crossOrigin": False},
        separators=(",", ":"),
    ).encode()
    _, signature = signer(seed, data + hashlib.sha256(client).digest())
    parts = ["passkey", base64url(data), base64url(client), base64url(signature)]
    return {"publicKey": public_key, kind: record, "signature": ".".join(parts)}


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


DESCRIBE = {
    "envelopes.json": describe_envelope,
    "passkeys.json": describe_passkey,
    "passkey-decisions.json": describe_passkey,
}


def main(folder, write):
    keys = json.loads((folder / "keys.json").read_text("utf-8"))
    results = []
    for file in sorted(folder.glob("*.json")):
        content = json.loads(file.read_text("utf-8"))
        if file.name == "derivations.json":
            results += [(file.name, *result) for result in check_derivations(content, keys)]
        elif file.name != "keys.json":
            for vector in content:
                facts = DESCRIBE.get(file.name, describe)(vector, keys)
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
