// Made by test/tools/editors.py.
module.exports = {
  reserved: [
    'if', 'else', 'for', 'while', 'return', 'break', 'continue', 'in', 'kernel', 'const', 'import', 'struct', 'tile', 'auto', 'void',
    'fn', 'static', 'static_assert', 'pipeline', 'unroll', 'nounroll', 'specialize', 'unchecked', 'true', 'false', 'inf', 'nan',
  ],
  clauses: [
    'grid', 'require', 'assume', 'key', 'alias', 'warps', 'stages', 'cluster', 'persistent', 'maxreg',
  ],
  types: [
    'bool', 'i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'f16', 'bf16', 'f32', 'f64', 'f8e4m3', 'f8e5m2', 'i4', 'u4', 'f4e2m1',
    'f8e4m3fnuz', 'f8e5m2fnuz', 'int', 'float',
  ],
};
