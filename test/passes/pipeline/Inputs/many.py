"""A kernel whose loop has 18 tiles for products."""
N = 9
print(f"""kernel many({", ".join(f"const f16 A{i}[M, K], const f16 B{i}[K, 16]" for i in range(N))}, f32 C[M, 16]) grid(cdiv(M, 64)) warps(4)
{{
    int m = pid(0) * 64;
    tile<f32, 64, 16> acc = 0;
    for (int k : range(0, K, 16)) pipeline {{""")
for i in range(N):
    print(f"        acc = dot(A{i}[m +: 64, k +: 16], B{i}[k +: 16, 0 +: 16], acc);")
print("    }\n    C[m +: 64, 0 +: 16] = acc;\n}")
