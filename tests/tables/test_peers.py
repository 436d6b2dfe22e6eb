"""Cell keys as an office's own package adds them up and looks them up, beside ours."""

from fractions import Fraction

import numpy as np
import pytest

from cvxleak.tables import PerturbationTable, Table

pd = pytest.importorskip("pandas")
peer = pytest.importorskip("cell_key_perturbation.create_perturbed_table")


@pytest.mark.slow
def test_every_cell_is_perturbed_as_the_office_does(tmp_path, capsys):
    from cell_key_perturbation.utils.generate_test_ptable import generate_ptable_10_5_rule

    rules = generate_ptable_10_5_rule()
    rules.to_csv(tmp_path / "ptable.csv", index=False)
    noise = PerturbationTable(tmp_path / "ptable.csv")
    assert noise.table.keys == 256
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {"a": rng.integers(0, 3, 3000), "b": rng.integers(0, 40, 3000) ** 2 // 99}
    )
    people["record_key"] = rng.integers(0, 256, len(people))
    options = {"ptable": rules, "geog": [], "record_key": "record_key", "threshold": 0}
    table = Table.from_microdata(people, ["a"], ["b"])
    true = dict(zip(table.numbers, table.true.tolist(), strict=True))
    for variables in (["a", "b"], ["a"], ["b"]):
        published = peer.create_perturbed_table(data=people, tab_vars=variables, **options)
        keys = people.groupby(variables)["record_key"].sum() % 256
        for row in published[published["pre_sdc_count"] > 0].to_dict("records"):
            label = tuple(row[name] if name in variables else "total" for name in ("a", "b"))
            cell = label if len(variables) > 1 else row[variables[0]]
            count, key = true[label], int(keys[cell])
            assert (row["pre_sdc_count"], row["ckey"]) == (count, key)
            # The key of a margin is the sum of its cells' keys, whoever adds them up.
            steps = noise.steps(count)
            ours = next(y for end, y in steps if Fraction(key, 256) < end)
            assert row["count"] == ours
