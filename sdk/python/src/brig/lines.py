"""Lines out of a stream of bytes.

Owns the bound on what is kept of a line. Never looks into one.
"""

from __future__ import annotations

from collections.abc import Iterator


class LineTooLong(Exception):
    """A line had more bytes than may be."""


class LineReader:
    """Collects chunks into lines."""

    def __init__(self, most: int) -> None:
        """``most``: longest line, in bytes."""
        self._most = most
        self._chunks: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that ``chunk`` ends, without their LF.

        Raises :class:`LineTooLong` as soon as a line has more bytes than may be.
        """
        start = 0
        while (end := chunk.find(b"\n", start)) != -1:
            self._keep(chunk[start:end])
            start = end + 1
            whole = b"".join(self._chunks)
            self._chunks.clear()
            self._length = 0
            yield whole
        self._keep(chunk[start:])

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        if self._length > self._most:
            raise LineTooLong(f"a line has more than {self._most} bytes")
        self._chunks.append(part)
