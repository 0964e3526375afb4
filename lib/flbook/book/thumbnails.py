"""Small pictures of the book's figures, one panel of two where that is asked for, with the standard library alone.

Notebooks store their pictures with a palette of 256 colours, one byte per pixel and row after row; the pages are
rendered where no library of pictures is installed.
"""

import struct
import zlib

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def thumbnail(png: bytes, panel: str = "") -> bytes:
    """The picture at half of its width and height: every four pixels become the palette's colour nearest to their mean.

    Parameters
    ----------
    png
        A picture with a palette, eight bits per pixel, not interlaced.
    panel
        ``"a"``, the upper panel alone, ``"b"``, the lower one, or empty.

    Returns
    -------
    bytes
        A PNG of the same palette.

    Raises
    ------
    ValueError
        If the picture is stored otherwise, or there is no such panel.
    """
    if panel not in ("", "a", "b"):
        raise ValueError(f"panel must be 'a' or 'b', or empty; got {panel!r}")
    chunks = _chunks(png)
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    if (depth, colour, interlaced) != (8, 3, 0):
        raise ValueError("a picture must have a palette, eight bits per pixel and no interlacing")
    rows = _unfiltered(zlib.decompress(chunks[b"IDAT"]), width, height)
    cut = _between(rows)
    rows = {"": rows, "a": rows[:cut], "b": rows[cut:]}[panel]
    blend, even = _Blend(chunks[b"PLTE"]), width // 2 * 2
    small = [bytes(map(blend.__getitem__, zip(up[:even:2], up[1:even:2], down[:even:2], down[1:even:2], strict=True)))
             for up, down in zip(rows[::2], rows[1::2], strict=False)]
    data = zlib.compress(b"".join(b"\0" + row for row in small), 9)
    head = struct.pack(">II", width // 2, len(small)) + chunks[b"IHDR"][8:]
    parts = {b"IHDR": head, b"PLTE": chunks[b"PLTE"], b"tRNS": chunks.get(b"tRNS"), b"IDAT": data, b"IEND": b""}
    return _SIGNATURE + b"".join(_packed(kind, part) for kind, part in parts.items() if part is not None)


def _between(rows: list[bytes]) -> int:
    """The row between two panels: the middle of the longest stretch without ink about half of the height."""
    low, high = round(0.36 * len(rows)), round(0.64 * len(rows))
    best, start = (0, len(rows) // 2), low
    for k in range(low, high + 1):
        if k == high or rows[k] != rows[0]:
            best = max(best, (k - start, (k + start) // 2))
            start = k + 1
    return best[1]


class _Blend(dict):
    """The colour of a palette that is nearest to the mean of four of them, found once for each four."""

    def __init__(self, palette: bytes):
        self.colours = list(zip(palette[::3], palette[1::3], palette[2::3], strict=True))
        self.nearest: dict[tuple[int, ...], int] = {}

    def __missing__(self, four: tuple[int, int, int, int]) -> int:
        if len(set(four)) == 1:
            found = four[0]
        else:
            mean = tuple(sum(parts) // 4 for parts in zip(*(self.colours[k] for k in four), strict=True))
            found = self.nearest.get(mean, -1)
            if found < 0:
                r, g, b = mean
                away = [(r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2 for x, y, z in self.colours]
                found = self.nearest[mean] = away.index(min(away))
        self[four] = found
        return found


def _chunks(png: bytes) -> dict[bytes, bytes]:
    """The parts of a PNG by their kinds; of several of a kind all that they hold."""
    if not png.startswith(_SIGNATURE):
        raise ValueError("a picture must be a PNG")
    found, at = {}, len(_SIGNATURE)
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind = png[at + 4 : at + 8]
        found[kind] = found.get(kind, b"") + png[at + 8 : at + 8 + size]
        at += 12 + size
    return found


def _packed(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _unfiltered(packed: bytes, width: int, height: int) -> list[bytes]:
    """The rows as they were before each was coded by its difference to what is left of it and above it."""
    rows, above = [], bytes(width)
    for k in range(height):
        start = k * (width + 1)
        above = _row(packed[start], packed[start + 1 : start + 1 + width], above)
        rows.append(above)
    return rows


def _row(code: int, coded: bytes, above: bytes) -> bytes:
    if code == 0:
        return coded
    row, left, corner = bytearray(), 0, 0
    for c, a in zip(coded, above, strict=True):
        guess = (0, left, a, (left + a) // 2, _paeth(left, a, corner))[code]
        left, corner = (c + guess) & 255, a
        row.append(left)
    return bytes(row)


def _paeth(left: int, above: int, corner: int) -> int:
    """Whichever of the three is nearest to left + above - corner."""
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))
