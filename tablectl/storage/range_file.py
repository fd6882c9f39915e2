"""A seekable file over ranged reads, for readers of Parquet."""

from __future__ import annotations

import io
from collections.abc import Callable


class RangeFile(io.RawIOBase):
    """A file of which each read is one call of ``fetch`` with a start and a number of bytes, both inside the file."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        super().__init__()
        self.size = size
        self._fetch = fetch
        self._at = 0

    def seekable(self) -> bool:
        """Always true."""
        return True

    def readable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """The position of the next read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As in ``io.RawIOBase``."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """As in ``io.RawIOBase``. Raises what ``fetch`` raises."""
        left = max(self.size - self._at, 0)
        size = left if size < 0 else min(size, left)
        data = self._fetch(self._at, size) if size else b""
        self._at += len(data)
        return data
