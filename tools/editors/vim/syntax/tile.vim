" Vim syntax file for .tile, made by test/tools/editors.py.
if exists("b:current_syntax")
  finish
endif

syn keyword tileControl if else for while return break continue in
syn keyword tileDeclaration kernel const import struct tile auto void fn static static_assert
syn keyword tileHint pipeline unroll nounroll specialize unchecked
syn keyword tileConstant true false inf nan
syn keyword tileType bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 i4 u4 f4e2m1 f8e4m3fnuz f8e5m2fnuz int float
syn keyword tileTodo contained TODO FIXME NOTE
syn match tileBuiltin /\v<(iota|zeros_like|identity|row|col|expand|broadcast|reshape|trans|squeeze|repeat|join|interleave|split|pick|put|cat|flip|extract|shift|roll|min|max|min_nan|max_nan|clamp|abs|sign|isnan|isinf|cdiv|floor_div|floor_mod|add_sat|sub_sat|avg|mulhi|popcount|clz|ctz|rotl|sqrt|floor|ceil|round|rint|trunc|fma|fmod|exp|exp2|expm1|log|log2|log10|log1p|rsqrt|cbrt|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|erf|erfc|pow|logaddexp|sigmoid|dot|dot_scaled|sum|prod|any|all|xor_sum|argmax|argmin|reduce|scan|cumsum|cumprod|cummax|cummin|sort|argsort|topk|histogram|gather|cast|bitcast|load|store|in|at|raw|view|sub|atomic_add|atomic_mul|atomic_min|atomic_max|atomic_and|atomic_or|atomic_xor|atomic_xchg|atomic_cas|atomic_load|atomic_store|pid|npid|print|assert|assume|multiple_of|contiguous|asm|range)>\ze\s*\(/
syn match tileClause /\v<(grid|require|assume|tune|key|instantiate|warps|stages|cluster|persistent|maxreg|alias|group|where|type)>\ze\s*\(/
syn match tileClause /\v;\s*\zswhere>/
syn match tileSpace /\v<(fast|target|device)>\ze\s*\./
syn match tileNumber /\v<0[xX][0-9a-fA-F_]*(\.[0-9a-fA-F_]*)?([pP][+-]?\d+)?|<0[bB][01_]+|<\d[0-9_]*(\.[0-9_]*)?([eE][+-]?\d+)?/
syn region tileString start=/"/ skip=/\\./ end=/"\|$/
syn match tileComment /\/\/.*/ contains=tileTodo,@Spell
syn match tileDoc /\/\/\/\/\@!.*/ contains=tileTodo,@Spell
syn region tileComment start=/\/\*/ end=/\*\// contains=tileTodo,@Spell

hi def link tileControl Statement
hi def link tileDeclaration Keyword
hi def link tileHint PreProc
hi def link tileClause PreProc
hi def link tileConstant Constant
hi def link tileType Type
hi def link tileBuiltin Function
hi def link tileSpace Identifier
hi def link tileNumber Number
hi def link tileString String
hi def link tileComment Comment
hi def link tileDoc SpecialComment
hi def link tileTodo Todo

let b:current_syntax = "tile"
