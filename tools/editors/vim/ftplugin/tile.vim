" Made by test/tools/editors.py.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,:///,://
setlocal shiftwidth=4 expandtab cindent
setlocal formatprg=tilec\ fmt\ -
let b:undo_ftplugin = "setl cms< com< sw< et< cin< fp<"
