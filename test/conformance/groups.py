#!/usr/bin/env python3
"""Which rows cover which feature: the groups that a compiler of this kind is expected to test, and where each is tested
here.

    groups.py            prints the table, and what is wrong with it: an entry without a row or file, a row in no group;
    exit 1 then

An entry is a feature and patterns: of names of rows, or, with a slash, of files below test/ (what must be refused, what
a pass does,
what the runtime does). Features that the language does not have are listed with the reason, so that nobody looks for
them.
"""
import fnmatch
import glob
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

GROUPS = {
    "types and literals": {
        "element types, as parameters, constants and const types": "scalar_parameters_of_every_type "
            "const_parameters_and_type f8_scalar_parameters f8_fnuz_scalars lang_types_of_auto",
        "literals: range, type, overflow": "lang_literals_* lang_small_integers_* frontend/diags/literal_* "
            "frontend/diags/constant_overflow.tile",
        "names of types that differ in the sign only": "int_division_* int_compare_*",
        "text of a program": "lang_clause_words_are_names lang_comments_anywhere lang_precedence_and_grouping_of_c "
            "frontend/syntax/*",
    }, "binary operators": {
        "arithmetic of every type, wrapping": "float_arithmetic_* int_arithmetic_* "
            "lang_fp_strict_rounds_each_operation",
        "bf16 products round to nearest even": "float_arithmetic_bf16",
        "division and remainder": "int_division_* int_cdiv_* division_by_constants int_division_never_traps_*",
        "pointer plus integers": "pointer_forms views_store_pointer_of_every_width "
            "views_pointers_with_ends_as_in_a_row",
        "constants with tiles, widening": "widen_* generic_operand_may_be_the_widest lang_widening_*",
        "bits and shifts": "int_bits_* lang_shift_amounts_modulo_the_width_* bool_logic",
        "comparison, logic, short circuit": "float_compare_* int_compare_* short_circuit_and_scalar_choice "
            "lang_logic_on_tiles",
    }, "broadcasting and shapes": {
        "broadcasting of operands, stores and masks": "broadcast_* broadcasting_and_shapes "
            "lang_broadcast_to_the_left_side frontend/diags/shapes_do_not_broadcast.tile",
        "new axes and fewer": "expand_* squeeze_* unsqueeze_* lang_axes_* frontend/diags/axis_out_of_range.tile",
        "order of axes, 2 to 5": "trans_* copy_bits_* frontend/diags/permutation_wrong.tile",
        "reshape, flat and back": "reshape_* move_reshape_* frontend/diags/reshape_of_other_size.tile",
        "cat": "cat_axis_* move_[a-z]*[0-9] move_*fnuz",
        "join, interleave, split": "join_split_interleave_* interleave_* move_parts_*",
        "stores of channels, side by side": "channels_*",
        "wide tiles that loops carry, and rows in registers": "carried_* strips_stored_*",
        "taps of stencils, and their borders": "border_taps_* taps_*",
        "rows that the program before has computed": "kept_*",
        "scalars as shapes of no axes": "rank_0_through_every_operation",
        "flip, repeat, extract, shift, roll, pick, put": "flip_* repeat_* extract_of_every_form pick_put_* move_bool "
            "shifted_from_large_home_* "
            "move_roll_bool lang_pick_and_put_*",
        "moves keep every bit": "moves_keep_bits_* move_extents_of_1_and_edges move_in_a_loop move_rotary",
        "strides of zero": "strides_of_zero",
        "every few elements of memory": "strides_[!o]*", "windows that move over memory": "windows_*",
        "rows and planes at any index, addresses of 32 bits": "sums_of_planes_*",
        "index tiles that count up, inside and at the border": "affine_*", "tiles of short rows": "short_*",
        "tiles of few columns, by columns": "columns_*",
        "fields of rows that an index tile lists": "fields_*", "lanes that gather from one place": "one_place_*",
        "loops along rows, of which each lane has one": "turned_*",
        "several programs at once": "wide_*", "whole rows as one axis": "fold_*",
    }, "programs of the grid": {
        "numbers of programs": "grid_of_six_axes lang_grid_* lang_persistent_grid frontend/diags/grid_axes.tile",
        "grids of one, none and thousands": "lang_grid_of_no_programs grid_of_thousands*",
        "grouped order": "lang_grouped_grid_*",
        "start in order": "lang_chain_in_start_order_* lang_scan_by_looking_back",
    }, "choice": {
        "by element and by scalar": "float_choice_* int_arithmetic_* short_circuit_and_scalar_choice",
        "with broadcasting": "broadcast_*",
    }, "unary and math": {
        "sign, absolute value, zeros keep their sign": "float_choice_* float_arithmetic_* float_rounding_*",
        "functions of f32 within their ulp": "math_*_f32 math_*_f32_strict",
        "f16 and bf16 through f32": "math_f16 math_bf16",
        "functions of f64": "stdlib/math.test frontend/diags/f64_function_missing.tile",
        "fused multiply and add, fusing, strict": "float_fma_* float_halves_in_quick_code lang_fusing_* "
            "lang_fp_strict_*",
        "division within 2 ulp": "float_arithmetic_f32 divide_by_one_*",
        "remainder and rounding are exact": "float_fmod_* float_rounding_*",
        "high half of a product, counts of bits": "int_bits_*",
        "floors, saturation, means": "int_floor_* int_saturating_*", "logaddexp": "math_logaddexp_*",
        "NaN in min and max, clamp": "float_choice_* float_extremes_* lang_infinities_nan_and_signed_zero",
    }, "atomics": {
        "each operation and type, with masks": "atomic_add_* atomic_mul_* "
            "atomic_min_* atomic_max_* atomic_and_* atomic_or_* "
            "atomic_xor_* float_atomics_with_nan",
        "every place: slices, gathers, pointers, parts": "atomics_with_masks_on_every_place "
            "lang_atomics_on_every_place masked_scalars",
        "8 and 16 bits beside each other, bool": "atomic_neighbours_* atomic_bool",
        "old values": "atomic_old_values lang_atomics_give_the_old_value",
        "compare and exchange": "atomic_cas_* lang_lock_by_compare_and_exchange",
        "load and store": "lang_atomic_load_store_*",
        "orders and scopes, waiting, messages": "lang_message_* lang_release_* lang_counters_* "
            "lang_scan_by_looking_back runtime/emu/races.tile",
        "types without atomics": "frontend/diags/atomic_type.tile",
        "many programs, one place": "histogram_of_weights_by_atomics grid_of_thousands*",
    }, "casts": {
        "every type to every type": "cast_from_* lang_casts_*", "bits as another type": "bitcast_*",
        "integers that the compiler knows": "known_integers_*",
        "integers that fewer bits hold": "few_bits_*",
        "rounding modes, saturation": "cast_toward_zero_* cast_f64_rounds_once cast_clamped_* narrow_stochastic_* "
            "narrow_*_to_f8* narrow_*_to_f4*",
        "8 and 4 bits to all and back": "narrow_from_* narrow_*_to_4_bits",
    }, "reductions": {
        "sums of every type, their result type": "reduce_bool reduce_rows_end_before_tile_* reduce_[iuf]* reduce_bf16 "
            "reduce_sum_random_* reduce_to_any_end_*",
        "along every axis, all axes": "sum_axis_* reduce_rank_3_and_1 reduce_across_*",
        "max and min, NaN": "reduce_nan_loses_*",
        "argmax and argmin, ties, nothing": "reduce_argmax_wide_* reduce_nan_loses_* reduce_where_and_keep reduce_i32",
        "any, all, xor, products": "reduce_any_all reduce_xor_* reduce_prod_*",
        "with a function, of tuples": "reduce_user_function_and_tuple",
        "chained": "reduce_rank_3_and_1 flow_static_for_builds_tiles",
        "a function with effects is refused": "frontend/diags/combine_with_effects.tile",
        "order of sums is free, locality": "passes/reduce-locality/*",
    }, "scans": {
        "along every axis, both ways": "cumsum_axis_* scan_cumsum_*",
        "with a function, of tuples": "scan_user_function scan_user_function_* "
            "flow_sorts_scans_and_reductions_in_a_while",
        "exclusive, from a first value": "scan_exclusive_* scan_init_*", "running extremes, NaN": "scan_extremes_*",
    }, "local arrays": {
        "every type, few elements and many": "array_*", "lanes of scalars": "array_lanes_of_scalars_*",
        "structs, functions, branches and loops": "array_of_structs_* array_in_control_flow_*",
    }, "order": {
        "sort, argsort, topk": "order_* sort_axis_*", "histogram, masks, values outside": "histogram_*",
        "tiles that go along": "order_beside_*", "weights": "histogram_weights_*", "gather": "move_gather_*",
    }, "matrix products": {
        "types and shapes": "dot_f* dot_b* dot_i8* dot_u8* dot_shape_* dot_random_* dot_deep_*",
        "integers of 16 to 64 bits, wrapping": "dot_i16* dot_u16* dot_i32* dot_u32* dot_i64* dot_u64* dot_wraps_*",
        "precisions of f32": "gemm_*_tf32_* gemm_*_tf32x3_* gemm_*_bf16x3_* gemm_*_ieee_*",
        "8-bit floats, mixed": "gemm_*_e4m3_* gemm_*_e5m2_* gemm_*_e4m3_e5m2_*", "batches": "gemm_batched_*",
        "operands that were not loaded": "dot_of_transposed_and_computed product_of_joined_halves "
            "gemm_carried_operand gemm_operand_reshaped",
        "by broadcasting": "product_by_broadcast_and_sum_*", "f16 sums": "gemm_*_out_f16_*",
        "block scales, of 32 and of 16": "dot_scaled_*", "8-bit floats of gfx942": "dot_*fnuz*",
        "few rows, both operands along k": "few_rows_*",
        "weights of 4 and 8 bits": "gemm_weights_* gemm_both_quantised packed_product_of_groups",
        "chains, epilogues, two in a loop": "dot_without_accumulator_and_chained gemm_chain_* gemm_*",
        "by warpgroups, with and without warps that only copy": "warpgroup_*",
        "by clusters of programs (multicast), by pairs of them": "cluster_* pair_*",
        "special values, extremes, empty": "dot_special_values dot_*_extremes dot_shape_*_40x30x0_*",
        "column-major operands": "dot_column_major_operands gemm_*_view_view_*",
    }, "loads and stores": {
        "masks, values for the rest": "store_masked masked_in_long_code_* slice_starts_outside pointer_forms",
        "scalars under masks": "masked_scalars",
        "cache and eviction": "cache_and_eviction_words lang_load_store_with_everything",
        "hints": "hints_change_nothing lang_hints_change_nothing_*",
        "strides, steps, columns": "view_strides lang_strides_of_parameters lang_steps_and_dropped_axes "
            "slice_with_steps_and_update views_store_* column_major_written_by_every_access",
        "indices from memory": "gather_* scatter_* pipeline_indirect recursive_pipeline_of_dependent_loads",
        "points": "points_*", "arrays of few elements": "lookup_*",
        "borders: edge, reflect, symmetric, wrap": "border_edge_* border_reflect_* "
            "border_symmetric_* border_wrap_*",
        "store and load of one place": "program_order_through_memory lang_program_order_* "
            "left_to_right_with_effects",
        "pointers from memory, tables of pointers, addresses": "pointers_*",
        "aliases": "alias_in_place pointers_in_tuples_and_branches views_80_parameters",
        "const": "frontend/diags/store_through_const.tile frontend/diags/const_view_to_writing_function.tile",
        "bounds, starts near 2^31 and 2^63, i64 extents": "slice_starts_outside unchecked_and_i64_extent "
            "lang_bounds_* bounds_of_known_* big_extents_and_starts_on_small_buffers",
        "sizes: one, none, odd": "copy_shape_* copy_bits_*",
        "products of bytes along rows": "quads_*", "products by tiles": "amx_*",
        "4-bit elements": "packed_* packed_views_by_every_index",
        "compound assignment": "update_of_slices_in_every_type lang_compound_* "
            "frontend/diags/update_of_gathered.tile",
        "vectors": "views_store_*_of_every_width codegen/aligned.tile",
    }, "blocks by descriptors": {
        "blocks of 1 to 5 axes": "copy_shape_* trans_* lang_steps_and_dropped_axes",
        "in functions, returned, in loops, in tuples": "flow_functions_with_views_and_defaults "
            "control_views_in_branches_and_loops lang_views_pointers_and_tuples_through_functions",
        "made of pointers, parts of parts": "view_of_pointer_and_sub lang_parts_of_views",
        "padding of zero and NaN": "slice_starts_outside masked_scalars",
        "axes dropped": "lang_steps_and_dropped_axes",
        "rows gathered and scattered": "gather_forms scatter_forms gemm_gathered_rows",
        "reductions into memory": "atomics_with_masks_on_every_place gemm_split_by_atomics",
        "extents that must agree": "lang_extents_are_unified_and_computed language/launch_checks.tile",
    }, "making": {
        "iota, full, zeros": "tiles_carried_by_loops_and_branches lang_variables_are_zero_* "
            "lang_casts_to_types_and_names",
        "random numbers": "std*random* stdlib/random.test",
    }, "constants of a kernel": {
        "values, types and functions as constants": "const_parameters_and_type functions_generic_and_higher_order "
            "matmul_f32_silu",
        "types compared": "types_compared_*",
        "static if, for, assert": "static_for_if_assert lang_static_statements flow_static_for_builds_tiles "
            "frontend/diags/static_assert_fails.tile",
        "variants": "variants_of_instantiate lang_variant_by_the_constant_given",
        "run-time values at their ends": "scalar_parameters_of_every_type flow_for_loops_of_every_integer_type",
    }, "calls": {
        "functions, generic, of tiles, by name": "functions_generic_and_higher_order lang_functions_* "
            "flow_functions_with_views_and_defaults",
        "returns from anywhere": "return_in_functions flow_returns_from_nested_loops_with_tiles "
            "lang_jumps_from_anywhere",
        "tuples and structs": "structs flow_structs_* flow_tuples_* pointers_in_tuples_and_branches",
        "modules": "lang_chain_in_start_order_of_three_axes frontend/diags/module_*",
        "recursion is refused": "frontend/diags/recursion.tile",
    }, "control flow": {
        "if, else, nested, with returns": "tiles_carried_by_loops_and_branches loops_with_exits flow_*",
        "while and for of every type, nested": "for_ranges flow_long_programs flow_for_loops_of_every_integer_type "
            "lang_ranges flow_scalar_types_carried",
        "every operation inside": "flow_moves_in_a_loop_with_branches flow_sorts_scans_and_reductions_in_a_while "
            "flow_memory_effects_in_order_under_control",
        "variables in blocks": "lang_scopes_and_hiding",
        "order of evaluation": "lang_evaluation_from_left_to_right left_to_right_with_effects",
        "rows longer than registers": "long_rows_* passes/chunk-rows/*",
        "tiles that wait in shared memory": "waits_* passes/park-tiles/*",
        "unrolled, pipelined, split between warps": "lang_hints_change_nothing_* hints_change_nothing pipeline_* "
            "passes/unroll/*",
    }, "pipelines": {
        "of products, their epilogues and prologues": "gemm_prefetched_by_hand gemm_pipeline_3_unroll_2 "
            "gemm_late_by_two_trips",
        "sums of products alone: ends, starts, what is outside": "products_* dot_of_*_rows_*",
        "of plain loads, odd sizes, stores, dependent loads": "pipeline_* gemm_writes_what_it_reads "
            "gemm_reads_what_it_wrote",
        "nests, branches, exits": "gemm_nest_* gemm_if_around_the_loop gemm_with_break gemm_with_continue "
            "gemm_in_while gemm_under_if gemm_in_both_branches gemm_loop_*",
    }, "whole kernels": {
        "matrix product, persistent, by lists": "matmul_* gemm_by_listed_blocks",
        "softmax, layer norm": "softmax_* layernorm_*",
        "attention, causal, paged, backward": "attention_* gemm_attention_*",
        "groups of products": "groups_of_products pointers_grouped_products*", "convolution": "gemm_convolution",
        "the library": "std*", "the library of kernels": "kernels_*", "examples": "examples/*",
    }, "debugging": {
        "print and assert": "language/promises_checked.tile tools/tilec_cli.py codegen/debug_buffer.tile",
        "what --check sees": "language/promises_checked.tile runtime/emu/bounds.tile runtime/emu/unwritten.tile",
        "lines": "codegen/lines.test codegen/lines_of_stdlib.tile",
        "reproducers": "passes/runner/crash.tir passes/runner/reduce.tir",
    }, "what must be refused": {
        "names, types, shapes, with their place": "frontend/diags/*", "hostile text": "frontend/hostile/*",
        "launches": "language/launch_checks.tile",
    }, "elements by text": {"assembly": "codegen/nvptx/asm.tile frontend/diags/asm_wrong.tile", },
    "functions": {
        "within functions, without a name": "nested_* together_functions_*",
        "beside borders, points, order, scans and atomics": "together_*",
        "what such a function must not do": "frontend/diags/nested_*.tile",
        "structs as options and parameters of a kernel": "options_* structs_passed_at_run_time "
            "structs_of_views_pointers_and_functions language/header_struct.test frontend/diags/field_auto.tile "
            "frontend/lower/options.tile frontend/diags/options_of_a_kernel.tile",
    },
    "the reference": {"each clause of LANGUAGE.md": "lang_*", }, "options and tools": {
        "warps": "codegen/warps.tile codegen/warps_no_power_of_two.tile",
        "registers, cached images, tuning": "codegen/too_many_registers.tile tools/tilec_cli.py",
        "images for several targets, from C": "codegen/fat_object.test matmul_f32_silu",
        "layouts, their algebra and moves": "parts_* unit/layout_test.c unit/convert_test.c codegen/simt/*",
        "axis facts": "unit/axis_info_test.c",
        "barriers, shared memory, coalescing": "passes/synchronize/* passes/allocate-shared/* passes/coalesce/* "
            "passes/order-reads/*",
        "random programs": "fuzz/*.test",
    },
}

NOT_HERE = {
    "wrapping arithmetic of bool": "bool has logic only",
    "threads, processor numbers and clocks": "a program is one logical thread",
    "timeouts of waiting": "a program waits in a loop of its own",
    "functions that are not inlined": "functions are inlined always",
    "effects inside a reduction's function": "refused",
    "a function per element": "operators and functions take whole tiles",
    "views reordered at will, layouts chosen by hand": "the compiler owns layouts",
    "approximate sums of 8-bit products": "sums are f32",
    "products of more than three axes": "reshape to one batch axis",
    "formats of 8 bits that are neither OCP's nor gfx942's": "there are four f8",
    "Bessel functions and the like": "not in the language",
    "overflow checks of integers": "integers wrap",
    "tensor memory": "no such target",
}


def rows():
    sys.path.insert(0, HERE)
    for path in sorted(glob.glob(os.path.join(HERE, "rows_*.py"))):
        importlib.import_module(os.path.basename(path)[:-3])
    return [r.name for r in importlib.import_module("rows").ROWS]


def main():
    names, wrong, seen = rows(), [], set()
    for group, features in GROUPS.items():
        print(f"{group}")
        for feature, patterns in features.items():
            counts = []
            for pattern in patterns.split():
                if "/" in pattern:
                    found = glob.glob(os.path.join(HERE, "..", pattern))
                else:
                    found = fnmatch.filter(names, pattern)
                    seen.update(found)
                if not found:
                    wrong.append(f"{group}: {feature}: nothing is named {pattern}")
                counts.append(f"{pattern} ({len(found)})" if len(found) != 1 else pattern)
            print(f"    {feature}: {' '.join(counts)}")
    print("not in the language")
    for feature, reason in NOT_HERE.items():
        print(f"    {feature}: {reason}")
    wrong += [f"row in no group: {n}" for n in names if n not in seen]
    print("\n".join([*wrong, f"{len(names)} rows, {sum(map(len, GROUPS.values()))} features, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
