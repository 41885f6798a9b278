"""Prints a kernel with an else-if ladder: ladder.py RUNGS."""
import sys

n = int(sys.argv[1])
print("kernel @ladder(%y: view<i32, 1>, %n: i32) {\n  %z = const {value = 0} : i32")
for i in range(n):
    print(f"  %c{i} = const {{value = {i}}} : i32\n  %e{i} = eq %n, %c{i} : bool")
    print(f"  %r{i} = if %e{i} : i32 () {{\n  %a{i} = add %n, %c{i} : i32\n  yield %a{i}\n  }} () {{")
print("  %m = mul %n, %n : i32\n  yield %m")
for i in reversed(range(n)):
    print("  }" + (f"\n  yield %r{i}" if i else ""))
print("  store %y, %z, %r0 {axes = [i]}\n  return\n}")
