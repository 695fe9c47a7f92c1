"""How much is tried: little in ``make test``, much in ``make verify``.

``PROOF_ROUNDS``  how often each random search is made; unset: the short form
``PROOF_SEED``    where the seeds begin; unset: the same ones in the short form, others each time
                  in the long one
``PROOF_SHRINK``  0: what is found is not made shorter
"""

from __future__ import annotations

import os
import random

_ROUNDS = int(os.environ.get("PROOF_ROUNDS") or 0)
_SEED = int(os.environ.get("PROOF_SEED") or 0)

#: Whether what is found is made shorter before it is shown.
SHRINK = os.environ.get("PROOF_SHRINK") != "0"
#: Whether this is the long form.
LONG = _ROUNDS > 0


def rounds(short: int, share: float = 1.0) -> int:
    """How often to try.

    :param short: in the short form.
    :param share: of the rounds of the long form, for what takes long.
    """
    return max(1, int(_ROUNDS * share)) if LONG else short


def first_seed() -> int:
    """Where the seeds begin; whoever uses it prints its seeds when something is found."""
    if _SEED or not LONG:
        return _SEED
    return random.SystemRandom().randrange(1, 2**31)
