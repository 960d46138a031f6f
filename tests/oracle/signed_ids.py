#!/usr/bin/env python3
"""The vectors of docs/signed-ids.md, computed again from its text alone with Python's hmac.
signed_ids.py PAGE: checks them. signed_ids.py --make: writes the table."""
import base64
import hashlib
import hmac
import sys

SECRETS = {"k1": bytes(range(32)), "2026-rotation_B": bytes.fromhex("5a" * 64)}
CASES = [("k1", 1700000000000, "00000000000000", "u1", "c1", ""),
         ("k1", 1700000000123, "01020304050607", "u1", "c1", "cr9"),
         ("2026-rotation_B", 1, "ffffffffffffff", "é" * 128, "campaign/42", "-")]


def tag(key, *parts):
    return hmac.new(SECRETS[key], b"".join(parts), hashlib.sha256).digest()


def counted(text):
    return len(text.encode()).to_bytes(2, "big") + text.encode()


def signed(key, time_ms, nonce, user, campaign, creative):
    head = time_ms.to_bytes(6, "big") + bytes.fromhex(nonce)
    key_part = bytes([len(key)]) + key.encode()
    head += tag(key, b"\0", head, key_part)[:4]
    mac = tag(key, b"\1", head, key_part, counted(user), counted(campaign), counted(creative))[:16]
    return f"fcap1.{key}." + base64.urlsafe_b64encode(head + mac).decode()


def row(case):
    key, time_ms, nonce, user, campaign, creative = case
    user = "`é` 128 times" if user == "é" * 128 else f"`{user}`"
    creative = f"`{creative}`" if creative else "none"
    return f"| `{key}` | {time_ms} | `{nonce}` | {user} | `{campaign}` | {creative} | `{signed(*case)}` |"


def main():
    rows = [row(case) for case in CASES]
    if sys.argv[1] == "--make":
        print("\n".join(rows))
        return 0
    with open(sys.argv[1], encoding="utf-8") as file:
        page = file.read()
    missing = [text for text in rows if text not in page]
    for text in missing:
        print(f"{sys.argv[1]} lacks this row:\n{text}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
