"""How the tables came to be: one step a file in ``versions``, run by Alembic.

Steps only add, and none is taken back: while workers are replaced, old ones write beside new ones.
"""

#: all of them, the oldest first; so a worker whose database is up to date needs no Alembic
REVISIONS = ("0001",)
