"""What a row is. The files rows_*.py fill ROWS, one group of features each."""
from collections import namedtuple

Row = namedtuple("Row", "name source args want consts kernel options devices same_bits big from_c warps stages beside",
                 defaults=(0, 0, False))
ROWS, NAMES = [], set()


def row(name, source, args, want, consts=None, kernel=None, options=(), devices=(), same_bits=True, big=False,
        from_c=False, warps=0, stages=0, beside=False):
    """source: text of the .tile file. args: parameter -> Arr or scalar.
    want: function(values by name) -> {parameter: Want}: each is saved and compared.
    same_bits: outputs must also be equal byte for byte on all devices (false where sums may be taken in any order).
    from_c: also launched by host.c, through the public headers; its arguments stand in the parameters' order.
    warps, stages: both or neither: what GPUs are to use. Rows that say it run on all emulated targets.
    beside: tables of addresses name arrays that are no parameters; --check would reject these, and is left out.
    devices: restrict to these kinds. big: takes seconds; not run under sanitizers."""
    if name in NAMES:
        raise ValueError(f"two rows named {name}")
    NAMES.add(name)
    ROWS.append(
        Row(name, source, args, want, consts or {}, kernel, list(options), list(devices), same_bits, big, from_c, warps,
            stages, beside))
