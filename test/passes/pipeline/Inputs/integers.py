"""Two matrices of small integers as f16, in files of NumPy's: integers.py PREFIX M N K."""
import struct
import sys

m, n, k = map(int, sys.argv[2:])
for name, rows, columns, by in (("a", m, k, 7), ("b", k, n, 11)):
    head = f"{{'descr': '<f2', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    values = [i * by % 13 - 6 for i in range(rows * columns)]
    with open(f"{sys.argv[1]}.{name}.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack(f"<{len(values)}e", *values))
