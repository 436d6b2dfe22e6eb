import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.model import Arimoto, GainMatrix, Gini, Guess, GuessInTries, Shannon, as_gain

GAINS = [
    Shannon(),
    Guess(),
    GuessInTries(1),
    GuessInTries(2),
    GuessInTries(9),
    GainMatrix([[1, -2, 0, 3], [0.5, 0.5, 0.5, 0.5], [-1, -1, 2, 0]]),
    Gini(),
    Arimoto(1.01),
    Arimoto(2),
    Arimoto(400),
    Arimoto(math.inf),
]
LAWS = np.vstack([np.eye(4), np.random.default_rng(0).dirichlet(np.full(4, 0.5), size=40)])


def test_values_by_their_definitions():
    law = np.array([0.1, 0.4, 0.2, 0.3])
    assert Shannon().value(law) == pytest.approx(sum(p * math.log(p) for p in law))
    assert Guess().value(law) == 0.4
    for tries in range(1, 5):
        best = max(sum(law[list(tried)]) for tried in itertools.combinations(range(4), tries))
        assert GuessInTries(tries).value(law) == pytest.approx(best)
    assert Gini().value(law) == pytest.approx(0.01 + 0.16 + 0.04 + 0.09)
    assert Arimoto(3).value(law) == pytest.approx(sum(p**3 for p in law) ** (1 / 3))
    assert GainMatrix([[1, 0, 0, 0], [0, 1, -1, 0]]).value(law) == pytest.approx(0.2)
    assert Shannon().value([1, 0]) == 0


@pytest.mark.parametrize("gain", GAINS, ids=repr)
def test_homogeneous_and_convex(gain):
    values = gain.value(LAWS)
    assert values.shape == (len(LAWS),)
    assert gain.value(7 * LAWS) == pytest.approx(7 * values)
    assert gain.value(np.zeros(4)) == 0
    # Subadditive, which for homogeneous functions is convex: seeing never harms.
    sums = gain.value(LAWS[:, None] + LAWS[None])
    assert (sums <= values[:, None] + values[None] + 1e-12).all()


@pytest.mark.parametrize("gain", GAINS, ids=repr)
def test_tangents_lie_below_and_touch(gain):
    laws = np.vstack([LAWS, np.zeros(4)])
    tangents = gain.tangent(laws)
    assert tangents.shape == laws.shape
    products = np.where(laws[None] > 0, laws[None] * np.maximum(tangents[:, None], -1e300), 0)
    below = products.sum(axis=-1)  # [i, j]: the tangent at law i, at law j
    assert (below <= gain.value(laws) + 1e-12).all()
    assert np.diagonal(below) == pytest.approx(gain.value(laws), abs=1e-12)


@pytest.mark.parametrize("gain", GAINS, ids=repr)
def test_rows_are_the_gain_where_there_are_any(gain):
    rows = gain.rows(4)
    linear = not isinstance(gain, (Shannon, Gini)) and getattr(gain, "alpha", math.inf) == math.inf
    assert (rows is not None) == linear
    if rows is not None:
        assert (LAWS @ rows.T).max(axis=1) == pytest.approx(gain.value(LAWS))


def test_sets_of_tries_are_listed_up_to_a_thousand():
    assert len(GuessInTries(2).rows(45)) == 990  # pyright: ignore[reportArgumentType]
    assert GuessInTries(2).rows(46) is None
    assert len(GuessInTries(60).rows(50)) == 1  # pyright: ignore[reportArgumentType]


def test_exact_entries_are_kept():
    table = GainMatrix([[Fraction(1, 3), "0.1"], [0, 1]]).table
    assert [Fraction(str(entry)) for entry in table.ravel().tolist()] == [
        Fraction(1, 3),
        Fraction(1, 10),
        0,
        1,
    ]


@pytest.mark.parametrize("gain", GAINS, ids=repr)
def test_gains_are_values(gain):
    assert pickle.loads(pickle.dumps(gain)) == gain
    assert hash(gain) == hash(pickle.loads(pickle.dumps(gain)))
    assert len(repr(gain)) < 80
    assert gain.unit in ("nats", "probability", "gain")
    assert [other for other in GAINS if other == gain] == [gain]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GainMatrix([[1, math.nan]]), r"table: found NaN at index \(0, 1\)"),
        (lambda: GainMatrix([[1, math.inf]]), "table: found entries from 1.0 to inf; gains are fi"),
        (lambda: GainMatrix([1, 2]), "table: expected 2 dim"),
        (lambda: GainMatrix([[]]), "table: found shape"),
        (lambda: GainMatrix([[1, 2]], ["a", "b"]), "actions: found 2 labels; 1 is needed"),
        (lambda: GuessInTries(0), "tries: found 0"),
        (lambda: GuessInTries(1.5), "tries: expected an integer"),  # pyright: ignore[reportArgumentType]
        (lambda: Arimoto(1), r"alpha: found 1; it must be in \(1, inf"),
        (lambda: Arimoto(-1), "alpha: found -1"),
        (lambda: as_gain(np.eye(3), 2), r"gain: found shape \(3, 3\); .* 2 columns"),
        (lambda: as_gain("x", 2), "gain: "),
        (lambda: GainMatrix(np.eye(3)).value([0.5, 0.5]), "gain: found shape"),
        (lambda: Guess().value([]), "laws: found an array"),
    ],
)
def test_refuses_what_is_no_gain(make, message):
    with pytest.raises(ValidationError, match=message):
        make()
