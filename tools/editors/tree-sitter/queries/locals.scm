; Kernels, functions, blocks and loops are scopes; names are known from their declaration on.
[(kernel) (function) (nested_function) (block) (loop) (lambda)] @local.scope

(array_parameter name: (identifier) @local.definition)
(parameter name: (identifier) @local.definition)
(constant_parameter name: (identifier) @local.definition)
(function_parameter name: (identifier) @local.definition)
(type_parameter name: (type_identifier) @local.definition)
(extent extent: (identifier) @local.definition)
(extent name: (identifier) @local.definition)
(lambda parameter: (identifier) @local.definition)
(init name: (identifier) @local.definition)
(unpacking name: (identifier) @local.definition)
(range_head name: (identifier) @local.definition)

[(identifier) (type_identifier)] @local.reference
