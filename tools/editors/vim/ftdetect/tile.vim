" Made by test/tools/editors.py.
au BufRead,BufNewFile *.tile setfiletype tile
