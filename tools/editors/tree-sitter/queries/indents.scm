; `indent.*` is what Neovim asks for, `indent` and `outdent` what Helix does.
[(block) (struct) (list) (set) (parameters) (arguments) (tune_clause) (instantiate_clause)] @indent.begin @indent
["}" ")" "]"] @indent.branch @indent.end @outdent
[(comment) (doc_comment)] @indent.ignore
