"""A private certificate authority and a certificate of localhost that it has signed, for servers that a test starts."""

import subprocess
from pathlib import Path

AUTHORITY = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")  # without it OpenSSL trusts no authority since 3.2
SUBJECT = "subjectAltName=DNS:localhost,IP:127.0.0.1"


def make_certificates(place: Path) -> Path:
    """Writes ca.pem, and own.pem with own.key. Returns the directory."""
    sign = ("openssl", "x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key")
    new = ("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    (place / "own.ext").write_text(SUBJECT)
    for command in (
        (*new, "-x509", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=private", *AUTHORITY),
        (*new, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=localhost"),
        (*sign, "-CAcreateserial", "-days", "2", "-extfile", "own.ext", "-out", "own.pem"),
    ):
        subprocess.run(command, cwd=place, check=True, capture_output=True)
    return place
