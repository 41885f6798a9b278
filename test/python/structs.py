"""Compares the ctypes structs with the headers' by a C program of assertions.

    structs.py SOURCE CC SCRATCH.c
"""
import ctypes
import subprocess
import sys

from tile import arrays, kernels, native

STRUCTS = {"tile_device_info": native.DeviceInfo, "tile_callbacks": native.Callbacks, "tile_const": native.Const,
           "tile_param_info": native.ParamInfo, "tile_arg": native.Arg, "tile_jit_options": native.JitOptions,
           "tile_tune_progress": native.TuneProgress, "tile_tune_options": native.TuneOptions, "tile_tune_result": native.TuneResult,
           "tilec_const": native.CompileConst, "tilec_options": native.CompileOptions, "tile_gemm_options": kernels.GemmOptions,
           "tile_norm_options": kernels.NormOptions, "tile_attention_options": kernels.AttentionOptions,
           "tile_rope_options": kernels.RopeOptions, "tile_cross_entropy_options": kernels.CrossEntropyOptions,
           "tile_reduce_options": kernels.ReduceOptions, "tile_scan_options": kernels.ScanOptions, "tile_sort_options": kernels.SortOptions,
           "tile_gemm_blocks_options": kernels.GemmBlocksOptions, "tile_sgd_options": kernels.SgdOptions, "tile_adam_options": kernels.AdamOptions,
           "tile_fft_options": kernels.FftOptions, "tile_window_options": kernels.WindowOptions}


def main(source, cc, scratch):
    lines = ["#include <stddef.h>", "#include <tile_jit.h>", "#include <tilec.h>", "#include <tile_kernels.h>"]
    for name, struct in STRUCTS.items():
        lines.append(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "size of {name}");')
        for field, *_ in struct._fields_:
            lines.append(f'_Static_assert(offsetof({name}, {field}) == {getattr(struct, field).offset}, "{name}.{field}");')
    for dtype, number in arrays.NUMBERS.items():
        lines.append(f'_Static_assert(TILE_{dtype.upper()} == {number}, "{dtype}");')
    lines.append(f'_Static_assert(TILE_ANY_WORD == {arrays.ANY_WORD} && TILE_ANY_BYTE == {arrays.ANY_BYTE}, "words");')
    with open(scratch, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    subprocess.run([cc, "-std=c11", "-fsyntax-only", f"-I{source}/runtime/include", f"-I{source}/codegen/include", f"-I{source}/stdlib/include",
                    scratch], check=True)
    print(f"structs agree: {len(lines) - 5} fields")


if __name__ == "__main__":
    main(*sys.argv[1:])
