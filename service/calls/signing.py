"""Ed25519 keys and signatures. Only here is the library that makes them, and it is imported when it is needed."""

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key.

    Attributes:
        public: the public key that belongs to it, 32 bytes in hex.
    """

    public: str
    _private: "Ed25519PrivateKey" = field(repr=False)

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - see above

        return cls._of(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> "SigningKey":
        """The key that a PEM file holds (PKCS #8, without a password), as OpenSSL makes it.

        Raises:
            ValueError: it holds none, or a key of another kind.
        """
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

        try:
            private = load_pem_private_key(pem, password=None)
        except (TypeError, UnsupportedAlgorithm) as exc:
            raise ValueError("the key has a password, or an unknown algorithm") from exc
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("the key is no Ed25519 key")  # noqa: TRY004 - a wrong value of the file
        return cls._of(private)

    @classmethod
    def _of(cls, private: "Ed25519PrivateKey") -> "SigningKey":
        return cls(private.public_key().public_bytes_raw().hex(), private)

    @property
    def id(self) -> str:
        """See `key_id`."""
        return key_id(self.public)

    def pem(self) -> bytes:
        """The private key as a PEM file."""
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, text: str) -> str:
        """The signature of an ASCII text, in hex."""
        return self._private.sign(text.encode("ascii")).hex()


def key_id(public: str) -> str:
    """The short name of a public key: the beginning of the SHA-256 of its bytes, in hex."""
    return hashlib.sha256(bytes.fromhex(public)).hexdigest()[:_ID_CHARS]


def is_signed(public: str, signature: str, text: str) -> bool:
    """Whether the private key of ``public`` has signed a text; malformed values have signed nothing."""
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), text.encode("ascii"))
    except (InvalidSignature, ValueError):
        return False
    return True
