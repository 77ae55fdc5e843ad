"""Rewrites model_v6.svml as a file of version 8, by docs/model-format.md: rows as what differs from a common row.

    python3 model_v8.py

The program itself writes version 8 only where that saves megabytes, which are too many for a file that is kept with the tests.
"""

import json
import struct
import zlib
from collections import Counter
from pathlib import Path

here = Path(__file__).resolve().parent
old = (here / "model_v6.svml").read_bytes()
version, length = struct.unpack("<IQ", old[8:20])
header = json.loads(old[20 : 20 + length])
arrays = old[20 + length : -4]
assert version == 6 and zlib.crc32(old[:-4]) == struct.unpack("<I", old[-4:])[0]
numbers = struct.unpack(f"<{len(arrays) // 8}d", arrays)

columns, rows = len(header["scaler"]["mean"]), len(header["support_rows"])
sizes = {"sphere": 1, "diagonal": columns, "full": columns * columns}
metrics = sum(sizes[member["form"]] for member in header["members"])
support = [numbers[metrics + i * columns :][:columns] for i in range(rows)]
common = [Counter(column).most_common(1)[0][0] for column in zip(*support)]
sparse = b""
for row in support:
    differs = [struct.pack("<d", a) != struct.pack("<d", b) for a, b in zip(row, common)]
    words = [sum(differ << k for k, differ in enumerate(differs[first : first + 64])) for first in range(0, columns, 64)]
    sparse += struct.pack(f"<{len(words)}Q", *words) + b"".join(struct.pack("<d", a) for a, differ in zip(row, differs) if differ)

packed = lambda values: struct.pack(f"<{len(values)}d", *values)
rest = numbers[metrics + rows * columns :]
new = old[:8] + struct.pack("<I", 8) + old[12 : 20 + length] + packed(numbers[:metrics]) + packed(common) + sparse + packed(rest)
(here / "model_v8.svml").write_bytes(new + struct.pack("<I", zlib.crc32(new)))
