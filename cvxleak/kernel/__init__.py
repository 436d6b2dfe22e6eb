"""The proof kernel: what is claimed of a channel and all adversaries, proved by a few rules.

A proof is a term, nested applications of rules; the kernel evaluates it, and what comes out is a
bound (`claims.check`). Each rule is a class whose docstring states and proves what it concludes,
whose fields are its signature, and whose `evaluate` is written once for all types of numbers that
it is used with.
:doc:`/certificates` states the lemmas and lists the rules.

- `numbers`, `many`, `budget`, `reading`: arithmetic, and files read strictly;
- `space`, `knowledge`, `noise`, `gains`, `view`: what a proof is about;
- `terms`, `lemmas`: what a rule is, and what rules share;
- `majorants`, `values`, `ratio`, `bounds`, `covers`: the rules;
- `leakage`, `independent` (with `cases`), `claims`: statements, and the check of a file.

It imports NumPy, python-flint, the standard library and itself.
"""
