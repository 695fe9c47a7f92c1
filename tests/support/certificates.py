"""Certificates of a test's own, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

MISSING = "Debian package openssl is missing"


class Certificates:
    """A certificate authority and what it has signed.

    :param folder: where the files go.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip(MISSING)
        self._folder = folder
        self.authority = folder / "ca.crt"
        self._authority_key = folder / "ca.key"
        self._openssl(
            *("req", "-x509", "-days", "2", "-subj", "/CN=an authority"),
            *self._new_key(self._authority_key),
            *("-out", str(self.authority)),
        )

    def sign(self, name: str, alternatives: str) -> tuple[Path, Path]:
        """A certificate for ``DNS:…`` or ``IP:…`` names.

        :returns: the files of the certificate and its key.
        """
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        request, extension = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        extension.write_text(f"subjectAltName={alternatives}\n")
        self._openssl("req", "-subj", f"/CN={name}", *self._new_key(key), "-out", str(request))
        self._openssl(
            *("x509", "-req", "-days", "2", "-in", str(request), "-out", str(certificate)),
            *("-CA", str(self.authority), "-CAkey", str(self._authority_key), "-CAcreateserial"),
            *("-extfile", str(extension)),
        )
        return certificate, key

    def config(self, name: str, alternatives: str = "IP:127.0.0.1") -> dict[str, str]:
        """What a server is configured with to speak TLS, to its replicas and masters too."""
        certificate, key = self.sign(name, alternatives)
        return {
            "tls-cert-file": str(certificate),
            "tls-key-file": str(key),
            "tls-ca-cert-file": str(self.authority),
            "tls-auth-clients": "no",
            "tls-replication": "yes",
        }

    def _new_key(self, path: Path) -> tuple[str, ...]:
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
        return (*curve, "-nodes", "-keyout", str(path))

    def _openssl(self, *words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=30)
