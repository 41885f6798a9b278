/* The grammar of .tile for tree-sitter, after frontend/grammar.y and in its order. test/tools/tree_sitter.py compares the two.
 *
 * Clause words (grid, tune, ...) are names wherever a clause cannot stand; the tool's keyword extraction does that. Words that are never
 * names are in words.js, which test/tools/editors.py makes; tree-sitter before 0.25 knows no reserved words and takes `int if = 1;`.
 *
 * It takes three things that the compiler does not, since a token is looked for only where it can stand: `a --b` as `a - -b`, `a ++b`
 * likewise, and a clause word as the name of a type. */
const words = require('./words.js');

const list = rule => seq(rule, repeat(seq(',', rule)));

module.exports = grammar({
  name: 'tile',
  word: $ => $.identifier,
  extras: $ => [/[ \t\r\f\v\n]/, $.comment, $.doc_comment],
  reserved: { global: _ => words.reserved.concat(words.types) },
  supertypes: $ => [$.expression, $.statement],
  conflicts: $ => [
    [$._postfix, $.qualified_type], // `geo.vec v;` and `a.b = c;`
  ],
  precedences: _ => [
    ['unary', 'product', 'sum', 'shift', 'order', 'equal', 'bitand', 'bitxor', 'bitor', 'and', 'or'],
  ],

  rules: {
    source_file: $ => repeat($._item),

    /* ---- items ---- */

    _item: $ => choice($.import, $.constants, $.struct, $.function, $.kernel, $.static_assert, ';'),
    import: $ => seq('import', field('module', choice($.module_name, $.string)), ';'),
    module_name: $ => seq($.identifier, repeat(seq('.', $.identifier))),
    constants: $ => seq('const', field('type', choice($._type, $.auto)), list($.init), ';'),
    struct: $ => seq('struct', field('name', alias($.identifier, $.type_identifier)), '{', repeat1($.fields), '}', ';'),
    fields: $ => seq(
      field('type', choice($._type, $.auto)),
      choice(alias($._array_field, $.field), $.field), repeat(seq(',', $.field)),
      ';'),
    field: $ => seq(field('name', $.identifier), optional(seq('=', field('value', $._field_value)))),
    _array_field: $ => seq(field('name', $.identifier), '[', field('count', $.expression), ']'),

    function: $ => seq(
      field('type', choice($._type, $.pointer_type, $.auto, $.void)),
      field('name', $.identifier), field('parameters', $.parameters), field('body', $.block)),
    kernel: $ => seq(
      'kernel', field('name', $.identifier), field('parameters', $.parameters), repeat($._clause), field('body', $.block)),

    parameters: $ => seq('(', optional(list($._parameter)), ')'),
    _parameter: $ => choice($.array_parameter, $.parameter, $.constant_parameter, $.function_parameter, $.type_parameter),
    array_parameter: $ => seq(optional('const'), field('type', $._type), field('name', $.identifier), '[', list($.extent), ']'),
    parameter: $ => seq(field('type', choice($._type, $.pointer_type, $.auto)), field('name', $.identifier)),
    constant_parameter: $ => seq(
      'const', field('type', $._type), field('name', $.identifier), optional(seq('=', field('default', $._field_value)))),
    function_parameter: $ => seq('const', 'fn', field('name', $.identifier), optional(seq('=', field('default', $.expression)))),
    type_parameter: $ => seq(
      'const', 'type', field('name', alias($.identifier, $.type_identifier)), optional(seq('=', field('default', $._type)))),
    extent: $ => seq(
      choice(seq(field('type', $.scalar_type), field('name', $.identifier)), field('extent', $.expression)),
      optional(seq(':', field('stride', $.expression)))),

    _clause: $ => choice($.clause, $.tune_clause, $.instantiate_clause),
    clause: $ => seq(
      field('name', alias(choice(...words.clauses), $.clause_name)), field('arguments', $.arguments)),
    tune_clause: $ => seq(
      alias('tune', $.clause_name), '(', list($.tuned), optional(seq(';', 'where', field('where', $.expression))), ')'),
    tuned: $ => seq(field('name', $.constant_name), 'in', field('values', $.set)),
    constant_name: $ => seq($.identifier, repeat(seq('.', $.identifier))),
    set: $ => seq('{', list($._value), optional(','), '}'),
    instantiate_clause: $ => seq(alias('instantiate', $.clause_name), '(', $.instance, repeat(seq(';', $.instance)), ')'),
    instance: $ => list($.binding),
    binding: $ => seq(field('name', $.constant_name), '=', field('value', $._value)),

    /* ---- types ---- */

    _type: $ => choice($.scalar_type, $.tile_type, $.struct_type, $._type_name, $.qualified_type),
    _type_name: $ => alias($.identifier, $.type_identifier),
    qualified_type: $ => seq(
      field('module', $.identifier), '.', field('name', alias($.identifier, $.type_identifier))),
    struct_type: $ => seq('struct', choice($._type_name, $.qualified_type)),
    pointer_type: $ => seq(optional('const'), $._type, '*'),
    scalar_type: _ => choice(...words.types),
    tile_type: $ => seq(
      'tile', '<', field('element', choice($.scalar_type, $._type_name)), repeat(seq(',', field('extent', $._sum))), '>'),
    auto: _ => 'auto',
    void: _ => 'void',
    _scalar_or_tile: $ => choice($.scalar_type, $.tile_type),

    /* ---- statements ---- */

    block: $ => seq('{', repeat($.statement), '}'),
    statement: $ => choice(
      $.block, $.empty, $.declaration_statement, $.expression_statement, $.if, $.loop, $.return, $.break, $.continue,
      $.static_assert, $.nested_function),
    empty: _ => ';',
    declaration_statement: $ => seq($._declaration, ';'),
    expression_statement: $ => seq($._simple, ';'),
    if: $ => prec.right(seq(
      optional('static'), 'if', '(', field('condition', $.expression), ')', field('then', $.statement),
      optional(seq('else', field('else', $.statement))))),
    loop: $ => seq($._loop_head, repeat($.hint), field('body', $.statement)),
    return: $ => seq('return', optional($.expression), ';'),
    break: _ => seq('break', ';'),
    continue: _ => seq('continue', ';'),
    static_assert: $ => seq('static_assert', field('arguments', $.arguments), ';'),
    nested_function: $ => seq(
      field('type', choice($._type, $.pointer_type, $.auto, $.void)),
      field('name', $.identifier), field('parameters', $.parameters), field('body', $.block)),

    _loop_head: $ => choice($.while_head, $.range_head, $.for_head),
    while_head: $ => seq('while', '(', field('condition', $.expression), ')'),
    range_head: $ => seq(
      optional('static'), 'for', '(', field('type', choice($._type, $.auto)), field('name', $.identifier), ':',
      field('range', $.expression), ')'),
    for_head: $ => seq(
      'for', '(', optional(choice($._declaration, $._simple)), ';', optional(field('condition', $.expression)), ';',
      optional($._simple), ')'),
    hint: $ => prec.right(seq(
      choice('pipeline', 'unroll', 'nounroll', 'specialize'), optional(seq('(', $.expression, ')')))),

    _declaration: $ => choice($.declaration, $.pointer_declaration, $.unpacking),
    declaration: $ => seq(optional('const'), field('type', choice($._type, $.auto)), list($.init)),
    pointer_declaration: $ => seq(field('type', $.pointer_type), $.init),
    unpacking: $ => seq(optional('const'), $.auto, '(', list(field('name', $.identifier)), ')', '=', field('value', $.expression)),
    init: $ => seq(
      field('name', $.identifier), optional(seq('[', field('count', $.expression), ']')),
      optional(seq('=', field('value', $._field_value)))),
    _field_value: $ => choice($.expression, $.list),
    list: $ => seq('{', optional(seq(list(choice($._field_value, $.named_value)), optional(','))), '}'),
    named_value: $ => seq(field('name', $.identifier), '=', field('value', $._field_value)),

    _simple: $ => choice($._postfix, $.assignment, $.step),
    assignment: $ => seq(
      optional('unchecked'), field('left', $._postfix),
      field('operator', choice('=', '+=', '-=', '*=', '/=', '%=', '&=', '|=', '^=', '<<=', '>>=')),
      field('right', $.expression)),
    step: $ => seq($._postfix, choice('++', '--')),

    /* ---- expressions ---- */

    expression: $ => choice($._operand, $.conditional, $.lambda),
    conditional: $ => seq(
      field('condition', $._operand), '?', field('then', $.expression), ':', field('else', $.expression)),
    lambda: $ => seq('fn', '(', optional(list(field('parameter', $.identifier))), ')', '=>', field('value', $.expression)),

    /* What stands between `?`, and what tile's extents are: without comparisons, whose `>` would end them. */
    _operand: $ => choice($._sum, alias($._binary, $.binary), alias($._equality, $.binary)),
    _binary: $ => choice(...[
      ['||', 'or'], ['&&', 'and'], ['|', 'bitor'], ['^', 'bitxor'], ['&', 'bitand'],
      ['<', 'order'], ['>', 'order'], ['<=', 'order'], ['>=', 'order'], ['<<', 'shift'], ['>>', 'shift'],
    ].map(([sign, level]) => prec.left(level, seq(
      field('left', $._operand), field('operator', sign), field('right', $._operand))))),
    _equality: $ => prec.left('equal', seq(
      field('left', choice($._operand, $._scalar_or_tile)), field('operator', choice('==', '!=')),
      field('right', choice($._operand, $._scalar_or_tile)))),
    _sum: $ => choice($._postfix, $.unary, $.cast, $.unchecked, alias($._arithmetic, $.binary)),
    _arithmetic: $ => choice(...[
      ['+', 'sum'], ['-', 'sum'], ['*', 'product'], ['/', 'product'], ['%', 'product'],
    ].map(([sign, level]) => prec.left(level, seq(
      field('left', $._sum), field('operator', sign), field('right', $._sum))))),
    unary: $ => prec('unary', seq(field('operator', choice('-', '+', '!', '~')), field('operand', $._sum))),
    cast: $ => prec('unary', seq(
      '(', field('type', choice($._scalar_or_tile, alias($._pointee, $.pointer_type))), ')', field('value', $._sum))),
    /* The name of a type is read as an operand of a product that lacks the other. */
    _pointee: $ => seq(optional('const'), choice($._scalar_or_tile, $._sum), '*'),
    unchecked: $ => prec('unary', seq('unchecked', $._postfix)),

    _postfix: $ => choice(
      $.identifier, $.member, $.call, $.index, $.integer, $.float, $.strings, $.true, $.false, $.inf, $.nan,
      $.parenthesized, $.tuple, $.struct_value, $.construction),
    member: $ => seq(field('object', $._postfix), '.', field('name', $.identifier)),
    call: $ => choice(
      seq(field('function', $._postfix), field('arguments', $.arguments)),
      seq(field('function', alias('in', $.identifier)), field('arguments', $.arguments))),
    index: $ => seq(field('array', $._postfix), '[', list(choice($.expression, $.span)), ']'),
    span: $ => seq(
      field('begin', $.expression), '+:', field('extent', $.expression), optional(seq(':', field('step', $.expression)))),
    parenthesized: $ => seq('(', $.expression, ')'),
    tuple: $ => seq('(', $.expression, repeat1(seq(',', $.expression)), ')'),
    struct_value: $ => seq('(', field('type', $.struct_type), ')', field('value', $.list)),
    construction: $ => seq(field('type', $._scalar_or_tile), field('arguments', $.arguments)),

    arguments: $ => seq('(', optional(list(choice($._value, $.span, $.named_argument))), ')'),
    named_argument: $ => seq(field('name', $.identifier), '=', field('value', $._value)),
    _value: $ => choice($.expression, $._scalar_or_tile),

    /* ---- tokens ---- */

    identifier: _ => /[a-zA-Z_][a-zA-Z_0-9]*/,
    integer: _ => token(choice('0', /[1-9](_?[0-9])*/, /0[xX][0-9a-fA-F](_?[0-9a-fA-F])*/, /0[bB][01](_?[01])*/)),
    float: _ => {
      const digits = '[0-9](_?[0-9])*', whole = '(0|[1-9](_?[0-9])*)', hex = '[0-9a-fA-F](_?[0-9a-fA-F])*';
      const exponent = '[eE][+-]?[0-9]+', power = '[pP][+-]?[0-9]+';
      return token(choice(
        new RegExp(`${whole}\\.(${digits})?(${exponent})?`), new RegExp(`${whole}${exponent}`),
        new RegExp(`\\.${digits}(${exponent})?`),
        new RegExp(`0[xX](${hex}(\\.(${hex})?)?|\\.${hex})${power}`)));
    },
    strings: $ => repeat1($.string),
    string: $ => seq('"', repeat(choice($.escape, token.immediate(prec(1, /[^"\\\n]+/)))), token.immediate('"')),
    escape: _ => token.immediate(/\\([nrtabfv\\"']|x[0-9a-fA-F]{2})/),
    true: _ => 'true',
    false: _ => 'false',
    inf: _ => 'inf',
    nan: _ => 'nan',

    /* `///` documents what follows, `////` does not. */
    comment: _ => token(choice(/\/\/([^\/\n][^\n]*)?/, /\/\/\/\/[^\n]*/, /\/\*[^*]*\*+([^\/*][^*]*\*+)*\//)),
    doc_comment: _ => token(/\/\/\/([^\/\n][^\n]*)?/),
  },
});
