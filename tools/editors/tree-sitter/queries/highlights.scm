; Made by test/tools/editors.py. No node has two captures, so that it does not matter which of two an editor takes.
["if" "else" "for" "while" "return" "break" "continue" "in"] @keyword.control
["kernel" "const" "import" "struct" "fn" "static" "static_assert" "type" "where"] @keyword
["pipeline" "unroll" "nounroll" "specialize" "unchecked"] @keyword.directive
(clause_name) @attribute
["tile" (scalar_type) (auto) (void)] @type.builtin
(type_identifier) @type
(pointer_type (identifier) @type)
[(true) (false) (inf) (nan)] @constant.builtin
[(integer) (float)] @number
(string) @string
(escape) @string.escape
(comment) @comment
(doc_comment) @comment.documentation

(kernel name: (identifier) @function)
(function name: (identifier) @function)
(nested_function name: (identifier) @function)
(function_parameter name: (identifier) @function)
((call function: (identifier) @function.builtin)
  (#any-of? @function.builtin "in"
    "iota" "zeros_like" "identity" "row" "col" "expand" "broadcast" "reshape" "trans" "squeeze" "repeat" "join" "interleave" "split"
    "pick" "put" "cat" "flip" "extract" "shift" "roll" "min" "max" "min_nan" "max_nan" "clamp" "abs" "sign" "isnan" "isinf" "cdiv"
    "floor_div" "floor_mod" "add_sat" "sub_sat" "avg" "mulhi" "popcount" "clz" "ctz" "rotl" "sqrt" "floor" "ceil" "round" "rint" "trunc"
    "fma" "fmod" "exp" "exp2" "expm1" "log" "log2" "log10" "log1p" "rsqrt" "cbrt" "sin" "cos" "tan" "asin" "acos" "atan" "atan2" "sinh"
    "cosh" "tanh" "erf" "erfc" "pow" "logaddexp" "sigmoid" "dot" "dot_scaled" "sum" "prod" "any" "all" "xor_sum" "argmax" "argmin"
    "reduce" "scan" "cumsum" "cumprod" "cummax" "cummin" "sort" "argsort" "topk" "histogram" "gather" "cast" "bitcast" "load" "store"
    "in" "at" "raw" "view" "sub" "atomic_add" "atomic_mul" "atomic_min" "atomic_max" "atomic_and" "atomic_or" "atomic_xor" "atomic_xchg"
    "atomic_cas" "atomic_load" "atomic_store" "pid" "npid" "print" "assert" "assume" "multiple_of" "contiguous" "asm" "range"))
((call function: (identifier) @function.call)
  (#not-any-of? @function.call "in"
    "iota" "zeros_like" "identity" "row" "col" "expand" "broadcast" "reshape" "trans" "squeeze" "repeat" "join" "interleave" "split"
    "pick" "put" "cat" "flip" "extract" "shift" "roll" "min" "max" "min_nan" "max_nan" "clamp" "abs" "sign" "isnan" "isinf" "cdiv"
    "floor_div" "floor_mod" "add_sat" "sub_sat" "avg" "mulhi" "popcount" "clz" "ctz" "rotl" "sqrt" "floor" "ceil" "round" "rint" "trunc"
    "fma" "fmod" "exp" "exp2" "expm1" "log" "log2" "log10" "log1p" "rsqrt" "cbrt" "sin" "cos" "tan" "asin" "acos" "atan" "atan2" "sinh"
    "cosh" "tanh" "erf" "erfc" "pow" "logaddexp" "sigmoid" "dot" "dot_scaled" "sum" "prod" "any" "all" "xor_sum" "argmax" "argmin"
    "reduce" "scan" "cumsum" "cumprod" "cummax" "cummin" "sort" "argsort" "topk" "histogram" "gather" "cast" "bitcast" "load" "store"
    "in" "at" "raw" "view" "sub" "atomic_add" "atomic_mul" "atomic_min" "atomic_max" "atomic_and" "atomic_or" "atomic_xor" "atomic_xchg"
    "atomic_cas" "atomic_load" "atomic_store" "pid" "npid" "print" "assert" "assume" "multiple_of" "contiguous" "asm" "range"))
(call function: (member name: (identifier) @function.call))
((member object: (identifier) @module.builtin)
  (#any-of? @module.builtin "fast" "target" "device"))
(import module: (module_name (identifier) @module))
(qualified_type module: (identifier) @module)

(array_parameter name: (identifier) @variable.parameter)
(parameter name: (identifier) @variable.parameter)
(constant_parameter name: (identifier) @constant)
(lambda parameter: (identifier) @variable.parameter)
(constants (init name: (identifier) @constant))
(constant_name (identifier) @constant)
(field name: (identifier) @property)
(named_argument name: (identifier) @variable.parameter)
(named_value name: (identifier) @property)

["+:" "<<=" ">>=" "<<" ">>" "<=" ">=" "==" "!=" "&&" "||" "++" "--" "+=" "-=" "*=" "/=" "%=" "&=" "|=" "^="
 "+" "-" "*" "/" "%" "&" "|" "^" "~" "!" "=" "?" "=>"] @operator
(binary operator: ["<" ">"] @operator)
(tile_type ["<" ">"] @punctuation.bracket)
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ";" "." ":"] @punctuation.delimiter
