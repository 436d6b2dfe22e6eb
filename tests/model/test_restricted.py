"""Which groups knowledge leaves, and the constraints on them: nothing is lost, nothing is added."""

from fractions import Fraction

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import Expectation, KnownMarginals, Mechanism, RecordSpace
from cvxleak.model._features import Linear
from cvxleak.model._implied import may_be_positive, not_implied, unlike
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.model.knowledge.violations import group_of_dataset, lump, violations_of_weights
from cvxleak.model.restricted import restrict
from cvxleak.queries import count, from_function, parity

TWO = Mechanism(parity(2), binary_symmetric(0.1))
FOUR = Mechanism(parity(4), binary_symmetric(0.1))


def line(coefficients, side):
    return Linear(tuple(map(float, coefficients)), Fraction(side), 0)


@pytest.mark.parametrize(
    ("coefficients", "mean"),
    [
        ([5, 1, 3, 3], 3),
        ([-2, 2, 0, 0], 0),
        ([-1, 3, 1, 1], 1),
        ([5, 2, 3, 3], None),
        ([5, 1, 3, 4], None),
        ([5, 1, 3, 2], None),
    ],
)
@pytest.mark.parametrize("given", [line([2, 0, 1, 1], 1), line([-2, 0, -1, -1], -1)])
def test_what_an_equation_determines(coefficients, mean, given):
    for side in (Fraction(1, 2), 0, 1, 3, 7):
        other = line(coefficients, side)
        assert unlike([given, other]) == ([given] if side == mean else [given, other])
        implied = mean is not None and mean <= side
        assert not_implied([other], [given]) == ([] if implied else [other])


def test_an_equation_that_says_nothing_implies_nothing():
    constant, other = line([1, 1], 1), line([0, 1], 1)
    assert unlike([constant, other]) == [constant, other]
    assert not_implied([other], [constant]) == [other]


def test_where_a_bound_leaves_probability():
    c = [Fraction(0), Fraction(1), Fraction(0)]
    assert may_be_positive(c, Fraction(0)).tolist() == [True, False, True]
    for most in (Fraction(1, 2), Fraction(1), Fraction(-1)):
        assert may_be_positive(c, most).all()


def first_is(**bound):
    return Expectation([0.0, 1.0], records=0, **bound)


@pytest.mark.parametrize(
    ("given", "value"),
    [
        (first_is(at_least=1.0), 1),
        (first_is(equals=1.0), 1),
        (first_is(at_most=0.0), 0),
        (first_is(equals=0.0), 0),
    ],
)
def test_a_mean_at_its_border_leaves_datasets_out(given, value):
    view = restrict(TWO, 1, as_knowledge(given, TWO.query))
    groups = group_of_dataset(view)
    assert ((groups >= 0).reshape(2, 2) == (np.array([[0], [1]]) == value)).all()
    assert (view.equations, view.inequalities) == ((), ())
    assert view.lumped.contexts == ((0 ^ value,), (1 ^ value,))


@pytest.mark.parametrize("mean", [-1.0, 2.0])
def test_what_nobody_meets_is_still_asked(mean):
    view = restrict(TWO, 1, as_knowledge(first_is(equals=mean), TWO.query))
    assert (group_of_dataset(view) >= 0).all()
    assert len(view.equations) == 1


def test_bounds_that_nobody_breaks_are_not_asked():
    view = restrict(TWO, 1, as_knowledge(first_is(at_most=1.0), TWO.query))
    assert view.inequalities == ()


def test_contradictions_leave_all_groups():
    known = as_knowledge([first_is(equals=0.0), first_is(equals=1.0)], TWO.query)
    view = restrict(TWO, 1, known)
    assert (group_of_dataset(view) >= 0).all()
    assert len(view.equations) == 2


@pytest.mark.parametrize("law", [[0.8, 0.2], [0.2, 0.8]])
def test_laws_of_some_records_say_nothing_of_the_others(law):
    known = as_knowledge(KnownMarginals(law, records=[1, 2]), FOUR.query)
    view = restrict(FOUR, 0, known)
    # Independent records; the unnamed ones are fair.
    fair = np.array([0.5, 0.5])
    p = np.einsum("a,b,c,d->abcd", fair, law, law, fair)
    w = lump(view, p.ravel())
    assert len(view.equations) == 1
    assert max(violations_of_weights(view, w, known).values()) < 1e-12
    p = np.einsum("a,b,c,d->abcd", fair, law[::-1], law, fair)
    assert max(violations_of_weights(view, lump(view, p.ravel()), known).values()) > 0.1


def test_three_values_are_known_by_two():
    space = RecordSpace([(0, 1, 2)] * 2)
    query = from_function(space, sum)
    mechanism = Mechanism(query, np.eye(5))
    law = np.array([0.3, 0.5, 0.2])
    known = as_knowledge(KnownMarginals(law), query)
    view = restrict(mechanism, 0, known)
    assert (
        max(violations_of_weights(view, lump(view, np.outer(law, law).ravel()), known).values())
        < 1e-12
    )
    for other in ([0.2, 0.5, 0.3], [0.3, 0.4, 0.3]):
        for p in (np.outer(law, other), np.outer(other, law)):
            assert max(violations_of_weights(view, lump(view, p.ravel()), known).values()) > 0.05


def test_two_further_queries_are_told_apart():
    total, first = count(2), from_function(RecordSpace.binary(2), lambda x: 3 * x[0])
    known = as_knowledge(
        [
            Expectation([0.0, 1.0, 2.0], query=total, equals=1.25, name="ones"),
            Expectation([0.0, 3.0], query=first, equals=1.5, name="first"),
        ],
        TWO.query,
    )
    view = restrict(TWO, 1, known)
    p = np.array([0.1, 0.2, 0.3, 0.4])  # 1.3 ones on average, three times .7
    assert violations_of_weights(view, lump(view, p), known) == pytest.approx(
        {known[0].statement: 0.05, known[1].statement: 0.6}
    )


@pytest.mark.parametrize("side", ["at_least", "at_most"])
def test_one_kind_of_bound(side):
    with pytest.raises(ValidationError, match=r"^equals: "):
        first_is(equals=0.5, **{side: 0.5})


def test_a_mapping_names_the_values_of_two_records_together():
    both = {(0, 0): 0.0, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 1.0}
    one, other = (
        as_knowledge(Expectation(c, records=(0, 1), at_most=0.2), TWO.query)
        for c in (both, lambda x, y: x * y)
    )
    assert one == other
