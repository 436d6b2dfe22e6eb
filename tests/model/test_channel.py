import math
from collections import Counter
from fractions import Fraction
from itertools import product

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import carries, fraction, integer_law
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, Prior, as_channel
from cvxleak.model._sampling import _below

seeds = st.integers(0, 2**32 - 1)


def random_channel(rng, inputs, outputs):
    """Rows with some exact zeros."""
    weights = rng.gamma(0.7, size=(inputs, outputs)) * (rng.random((inputs, outputs)) < 0.8)
    weights[:, 0] += 0.1
    return Channel(weights / weights.sum(axis=1, keepdims=True))


def information(prior, matrix):
    joint = prior[:, None] * matrix
    return entr(joint.sum(axis=0)).sum() + entr(prior).sum() - entr(joint).sum()


class TestFromSolver:
    def test_rows_are_clipped_emptied_and_divided(self):
        found = np.array([[0.6, 0.4 - 1e-8, -1e-9, 1e-7], [0.0, 0.5, 0.5, 4e-7]])
        channel = Channel.from_solver(found, outputs="abcd")
        kept = found * [[1, 1, 0, 0], [1, 1, 1, 0]]
        assert channel.matrix == pytest.approx(kept / kept.sum(axis=1, keepdims=True), abs=1e-15)
        assert channel.outputs == tuple("abcd")
        assert Channel.from_solver(found, tol=2e-7).matrix[1, 3] > 0

    def test_a_channel_stays_as_it_is(self):
        rows = [[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]
        assert np.array_equal(Channel.from_solver(rows).matrix, rows)

    @pytest.mark.parametrize(
        ("matrix", "tol", "message"),
        [
            (None, 1e-6, "matrix: found None; the solver found no point"),
            (cp.Variable((2, 2)), 1e-6, "matrix: found a CVXPY expression; its `value`"),
            ([[]], 1e-6, "matrix: found shape"),
            ([[np.nan, 1.0]], 1e-6, "matrix: found NaN"),
            ([[np.inf, 1.0]], 1e-6, "sum of row 0 of inf"),
            ([[1.0, -2e-6]], 1e-6, "least entry of -2e-06"),
            ([[0.5, 0.5], [0.5, 0.499]], 1e-6, "sum of row 1 of 0.999"),
            ([[0.5, 0.5]], 0.25, "tol"),
            ([[0.5, 0.5]], 0.0, "tol"),
        ],
    )
    def test_what_is_no_rounding_is_refused(self, matrix, tol, message):
        with pytest.raises(ValidationError, match=message):
            Channel.from_solver(matrix, tol=tol)


class TestValidation:
    @pytest.mark.parametrize(
        ("matrix", "message"),
        [
            ([], "expected 2 dimension"),
            ([[]], "must not be empty"),
            ([0.5, 0.5], "expected 2 dimension"),
            ([[0.5, 0.5], [1.0]], "real numbers"),
            (np.ma.array([[0.5, 0.5]], mask=[[True, False]]), "some are masked"),
            ([[0.5, 0.5], [0.5, 0.4]], "row 1 sums to 0.9"),
            ([[0.5, 0.5], [0.1, 0.8989999999999999]], r"row 1 sums to 0\.999;"),
            ([[1.5, -0.5]], r"found -0.5 at index \(0, 1\)"),
            ([[math.nan, 1]], "NaN"),
            ([[math.inf, 0]], "found inf"),
        ],
    )
    def test_bad_matrices(self, matrix, message):
        with pytest.raises(ValidationError, match=rf"^matrix: .*{message}|^matrix:.*{message}"):
            Channel(matrix)

    def test_bad_labels(self):
        with pytest.raises(ValidationError, match=r"^inputs: found 1 label; 2 are needed"):
            Channel(np.eye(2), inputs=["a"])
        with pytest.raises(ValidationError, match=r"^outputs: .*equal"):
            Channel(np.eye(2), outputs=["a", "a"])

    def test_rows_by_label(self):
        channel = Channel([[0.25, 0.75], [1.0, 0.0]], ["b", 0])
        assert channel.row("b").tolist() == [0.25, 0.75]
        assert channel.shape == (2, 2)
        with pytest.raises(ValidationError, match=r"^label: found 'c'; the inputs are \['b', 0\]"):
            channel.row("c")
        with pytest.raises(ValueError, match=r"read-only"):
            channel.row(0)[0] = 0.5

    def test_messages_about_many_labels_are_short(self):
        channel = Channel(np.full((500, 1), 1.0), [("x" * 100, i) for i in range(500)])
        with pytest.raises(ValidationError) as caught:
            channel.row("c")
        assert len(str(caught.value)) < 600
        assert len(repr(channel)) < 600

    def test_as_channel(self):
        channel = Channel([[0.5, 0.5]])
        assert as_channel(channel) is channel
        assert as_channel([[0.5, 0.5]]) == channel
        frame = pd.DataFrame([[0.5, 0.5]], index=["a"], columns=["x", "y"])
        assert as_channel(frame) == Channel([[0.5, 0.5]], ["a"], ["x", "y"])
        with pytest.raises(ValidationError, match=r"found 'rows\.csv'; Channel\.from_csv reads"):
            as_channel("rows.csv")
        with pytest.raises(ValidationError, match=r"^noise: row 0 sums to"):
            as_channel([[0.5, 0.6]], "noise")


class TestComposition:
    def test_then_is_the_matrix_product(self):
        first = Channel([[0.5, 0.5], [0.0, 1.0]], ["a", "b"], ["m", "n"])
        second = Channel([[1.0, 0.0, 0.0], [0.25, 0.25, 0.5]], ["m", "n"], "xyz")
        assert first.then(second) == Channel(
            [[0.625, 0.125, 0.25], [0.25, 0.25, 0.5]], ["a", "b"], "xyz"
        )

    @given(seed=seeds)
    def test_then_is_associative(self, seed):
        rng = np.random.default_rng(seed)
        a, b, c = (random_channel(rng, 3, 3) for _ in range(3))
        left, right = a.then(b).then(c), a.then(b.then(c))
        assert (left.inputs, left.outputs) == (right.inputs, right.outputs)
        assert left.matrix == pytest.approx(right.matrix, abs=1e-15)

    def test_then_needs_the_outputs_in_order(self):
        first = Channel(np.eye(2), outputs=["m", "n"])
        with pytest.raises(ValidationError, match=r"^channel: its inputs are \['n', 'm'\]"):
            first.then(Channel(np.eye(2), inputs=["n", "m"]))
        with pytest.raises(ValidationError, match=r"^channel: expected a Channel"):
            first.then(np.eye(2))

    @given(seed=seeds)
    def test_at_is_then_and_an_array_is_the_matrix(self, seed):
        rng = np.random.default_rng(seed)
        a, b = random_channel(rng, 3, 2), random_channel(rng, 2, 4)
        assert a @ b == a.then(b)
        assert (np.asarray(a) == a.matrix).all()
        assert (np.eye(3) @ a == a.matrix).all()
        np.asarray(a)[0, 0] = 5  # a copy
        assert a.matrix[0, 0] <= 1
        with pytest.raises(ValidationError, match="channel: expected a Channel, found an array"):
            a @ np.eye(2)  # pyright: ignore[reportOperatorIssue]
        with pytest.raises(ValidationError, match=r"probabilities: found a Channel, whose labels"):
            Prior(a)

    @given(seed=seeds)
    def test_choices_seen_and_hidden(self, seed):
        rng = np.random.default_rng(seed)
        a = Channel(random_channel(rng, 3, 2).matrix, outputs=["x", "y"])
        b = Channel(random_channel(rng, 3, 3).matrix, outputs=["y", "z", "x"])
        prior, share = rng.dirichlet(np.ones(3)), rng.random()
        seen, hidden = a.visible_choice(b, share), a.hidden_choice(b, share)
        mean = share * mutual_information(a, prior) + (1 - share) * mutual_information(b, prior)
        assert mutual_information(seen, prior) == pytest.approx(mean, abs=1e-12)
        assert hidden.outputs == ("x", "y", "z")
        for x in range(3):
            for y in hidden.outputs:
                own = share * a.row(x)[a.outputs.index(y)] if y in a.outputs else 0
                expected = own + (1 - share) * b.row(x)[b.outputs.index(y)]
                assert hidden.row(x)[hidden.outputs.index(y)] == pytest.approx(expected)
        forget = [[float(y == z) for z in hidden.outputs] for _, y in seen.outputs]
        assert np.allclose(seen.matrix @ forget, hidden.matrix)
        assert a.hidden_choice(a, share).outputs == a.outputs
        with pytest.raises(ValidationError, match="this channel's inputs"):
            a.visible_choice(Channel(np.eye(2)), share)
        with pytest.raises(ValidationError, match=r"chance: found 1\.5; it must be in"):
            a.hidden_choice(b, 1.5)

    def test_what_is_made_of_exact_entries_is_exact(self):
        third, half = Fraction(1, 3), Fraction(1, 2)
        thirds = Channel([["1/3", "2/3"], ["1/7", "6/7"]])
        plain = Channel([[0.9, 0.1], [0.5, 0.5]])
        p = [[third, 2 * third], [Fraction(1, 7), Fraction(6, 7)]]
        q = [[Fraction(9, 10), Fraction(1, 10)], [half, half]]

        def exact(channel):
            return [[fraction(x) for x in row] for row in channel.matrix.tolist()]

        for one, other, rows, others in ((thirds, plain, p, q), (plain, thirds, q, p)):
            assert exact(one @ other) == [
                [sum(row[y] * others[y][z] for y in range(2)) for z in range(2)] for row in rows
            ]
            assert exact(one.product(other)) == [
                [a * b for a in row for b in below] for row, below in zip(rows, others, strict=True)
            ]
            for chance in (0.25, third):
                share = Fraction(chance)
                mixed = [
                    [*(share * a for a in row), *((1 - share) * b for b in below)]
                    for row, below in zip(rows, others, strict=True)
                ]
                assert exact(one.visible_choice(other, chance)) == mixed
                assert exact(one.hidden_choice(other, chance)) == [
                    [row[0] + row[2], row[1] + row[3]] for row in mixed
                ]
        assert exact(plain.hidden_choice(plain, "1/3")) == q
        # Floats stand for what the certificates take them for.
        floats = Channel([[1 / 3, 2 / 3], [0.1, 0.9]])
        assert exact(thirds @ floats)[0] == [
            third * third + 2 * third * Fraction(1, 10),
            third * 2 * third + 2 * third * Fraction(9, 10),
        ]
        assert not carries(plain.then(plain).matrix)

    @given(seed=seeds)
    def test_product_is_conditionally_independent(self, seed):
        rng = np.random.default_rng(seed)
        a, b = random_channel(rng, 2, 3), random_channel(rng, 2, 2)
        both = a.product(b)
        for x in range(2):
            for k, (y, z) in enumerate(both.outputs):
                assert both.matrix[x, k] == a.matrix[x, y] * b.matrix[x, z]

    def test_product_needs_the_inputs_in_order(self):
        with pytest.raises(ValidationError, match=r"^channel: its inputs are"):
            Channel(np.eye(2), ["a", "b"]).product(Channel(np.eye(2), ["b", "a"]))

    def test_valid_channels_always_compose(self):
        # Each within the tolerance; their compositions are off by up to twice of it.
        off = 1 + 0.9e-9
        channel = Channel(np.array([[0.5, 0.5], [0.25, 0.75]]) * off)
        prior = Prior(np.array([0.5, 0.5]) * off)
        assert channel.then(channel).matrix.sum(axis=1) == pytest.approx([1, 1], abs=1e-9)
        assert channel.product(channel).matrix.sum(axis=1) == pytest.approx([1, 1], abs=1e-9)
        assert channel.output(prior).probabilities == pytest.approx([0.375, 0.625], abs=1e-9)
        many = channel
        for _ in range(10):
            many = many.then(channel).reduced()
        assert many.matrix.sum(axis=1) == pytest.approx([1, 1], abs=1e-9)


class TestReduced:
    @given(seed=seeds)
    def test_keeps_the_information_of_every_prior(self, seed):
        rng = np.random.default_rng(seed)
        base = random_channel(rng, 3, 3).matrix
        # Split each column in proportions, shuffle, add a zero column.
        shares = rng.dirichlet(np.ones(3), 3)
        split = (base[:, :, None] * shares).reshape(3, 9)[:, rng.permutation(9)]
        channel = Channel(np.hstack([split, np.zeros((3, 1))]) / split.sum(axis=1, keepdims=True))
        reduced = channel.reduced()
        assert reduced.shape[1] <= 3
        for _ in range(5):
            prior = rng.dirichlet(np.ones(3))
            assert information(prior, reduced.matrix) == pytest.approx(
                information(prior, channel.matrix), abs=1e-13
            )

    def test_labels(self):
        channel = Channel([[0.25, 0.25, 0.0, 0.5], [0.5, 0.5, 0.0, 0.0]], outputs="abcd")
        assert channel.reduced() == Channel([[0.5, 0.5], [1.0, 0.0]], outputs=[("a", "b"), "d"])

    def test_labels_that_would_collide(self):
        labels = [(1, 2), 1, 2]
        reduced = Channel([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]], outputs=labels).reduced()
        assert reduced.outputs == (((1, 2),), (1, 2))

    def test_nothing_to_merge(self):
        channel = Channel([[0.3, 0.7], [0.6, 0.4]], outputs="ab")
        assert channel.reduced() == channel

    def test_a_zero_is_not_a_small_number(self):
        # Merging them would turn an infinite privacy loss into a finite one.
        channel = Channel([[0.0, 1e-14, 1 - 1e-14], [0.5, 0.5, 0.0]])
        assert channel.reduced().shape == (2, 3)

    def test_the_tolerance_is_relative(self):
        a, b = 1e-6, 1.001e-6
        matrix = [[a, b, 1 - a - b], [0.5, 0.5, 0.0]]
        assert Channel(matrix).reduced().shape == (2, 3)
        assert Channel(matrix).reduced(tol=0.01).shape == (2, 2)

    @pytest.mark.parametrize("tol", [-1e-9, 1.0, math.nan, "none", None])
    def test_bad_tolerances(self, tol):
        with pytest.raises(ValidationError, match=r"^tol: "):
            Channel([[1.0]]).reduced(tol)

    def test_equal_keys_do_not_confuse(self):
        # All columns are permutations of each other; only equal ones may merge.
        column = np.array([0.1, 0.2, 0.3, 0.4])
        rows = np.stack([np.roll(column, k) for k in (0, 1, 2, 3, 0, 2)], axis=1)
        channel = Channel(rows / rows.sum(axis=1, keepdims=True))
        sizes = [
            len(label) if isinstance(label, tuple) else 1 for label in channel.reduced().outputs
        ]
        shapes = channel.matrix / channel.matrix.sum(axis=0)
        distinct = Counter(tuple(np.round(shape, 12)) for shape in shapes.T)
        assert sorted(sizes) == sorted(distinct.values())


class TestBayes:
    @given(seed=seeds)
    def test_joint_law_from_both_sides(self, seed):
        rng = np.random.default_rng(seed)
        channel = random_channel(rng, 3, 4)
        prior = rng.dirichlet(np.ones(3))
        output, posterior = channel.output(prior), channel.posterior(prior)
        assert output.labels == channel.outputs
        for y in posterior.inputs:
            back = output[y] * posterior.row(y)
            assert back == pytest.approx(prior * channel.matrix[:, y], abs=1e-15)

    def test_outcomes_of_probability_zero_have_no_posterior(self):
        channel = Channel([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]], ["a", "b"], "xyz")
        posterior = channel.posterior([1.0, 0.0])
        assert posterior == Channel([[1.0, 0.0]], ["x"], ["a", "b"])

    def test_tiny_probabilities_do_not_vanish(self):
        tiny = 1e-200
        channel = Channel([[tiny, 1 - tiny], [2 * tiny, 1 - 2 * tiny], [0.0, 1.0]])
        posterior = channel.posterior([tiny, tiny, 1 - 2 * tiny])
        assert posterior.row(0) == pytest.approx([1 / 3, 2 / 3, 0], abs=1e-15)

    def test_priors_are_matched_by_label(self):
        channel = Channel([[1.0, 0.0], [0.5, 0.5]], ["no", "yes"])
        prior = Prior([0.25, 0.75], ["yes", "no"])
        assert channel.output(prior).probabilities.tolist() == [0.875, 0.125]
        assert channel.posterior(prior).row(0) == pytest.approx([0.75 / 0.875, 0.125 / 0.875])
        for method in (channel.output, channel.posterior):
            with pytest.raises(ValidationError, match=r"^prior: its labels are"):
                method(Prior([0.5, 0.5], ["a", "b"]))
            with pytest.raises(ValidationError, match=r"^prior: found 3 outcomes; 2 are needed"):
                method([0.5, 0.25, 0.25])


class TestSampling:
    @pytest.mark.parametrize(
        "row",
        [[0.1, 0.2, 0.7 + 1e-15], [5e-324, 1.0], [0.0, 1.0], [1.0], [1e-300, 0.5, 0.5]],
    )
    def test_weights_are_exactly_proportional(self, row):
        weights = integer_law(row)
        assert all(type(w) is int for w in weights)
        for w, p in zip(weights, row, strict=True):
            assert Fraction(w, sum(weights)) == Fraction(p) / sum(map(Fraction, row))

    @pytest.mark.parametrize("total", [1, 2, 5, 8, 300])
    def test_every_ticket_has_the_same_number_of_byte_strings(self, total):
        """Enumerate all byte strings that the generator can give."""
        size = ((total - 1).bit_length() + 7) // 8

        class Fixed:
            def __init__(self, data):
                self.chunks = [data]

            def bytes(self, count):
                assert count == size
                return self.chunks.pop()  # a second call means that the first was rejected

        tickets = Counter()
        for data in product(range(256), repeat=size):
            try:
                tickets[_below(total, Fixed(bytes(data)))] += 1
            except IndexError:
                continue
        assert set(tickets) == set(range(total))
        assert len(set(tickets.values())) == 1

    def test_the_law_of_the_draw_is_the_row(self, monkeypatch):
        channel = Channel([[0.25, 0.0, 0.625, 0.125]], outputs="abcd")
        total = sum(integer_law(channel.row(0)))
        tickets = iter(range(total))
        monkeypatch.setattr("cvxleak.model._sampling._below", lambda *_: next(tickets))
        drawn = Counter(channel.sample(0, size=total))
        assert {y: Fraction(n, total) for y, n in drawn.items()} == {
            "a": Fraction(1, 4),
            "c": Fraction(5, 8),
            "d": Fraction(1, 8),
        }

    def test_frequencies(self):
        channel = Channel([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
        drawn = Counter(channel.sample(0, size=20_000, rng=5))
        for y, p in enumerate([0.7, 0.2, 0.1]):
            # Five standard deviations.
            assert abs(drawn[y] / 20_000 - p) < 5 * math.sqrt(p * (1 - p) / 20_000)

    def test_reproducible(self):
        channel = Channel([[0.3, 0.7]])
        assert channel.sample(0, 50, rng=1) == channel.sample(0, 50, rng=1)
        assert channel.sample(0, 50, rng=1) != channel.sample(0, 50, rng=2)
        rng = np.random.default_rng(1)
        assert channel.sample(0, 25, rng) + channel.sample(0, 25, rng) == channel.sample(0, 50, 1)

    def test_system_entropy(self):
        assert set(Channel([[0.5, 0.0, 0.5]]).sample(0, size=200)) == {0, 2}

    def test_one_or_many(self):
        channel = Channel([[1.0]], outputs=["only"])
        assert channel.sample(0) == "only"
        assert channel.sample(0, size=0) == []
        assert channel.sample(0, size=1) == ["only"]

    @pytest.mark.parametrize(
        ("arguments", "name"),
        [
            ({"label": 5}, "label"),
            ({"label": 0, "size": -1}, "size"),
            ({"label": 0, "size": 2.0}, "size"),
            ({"label": 0, "rng": -1}, "rng"),
            ({"label": 0, "rng": "seed"}, "rng"),
            ({"label": 0, "rng": np.random.RandomState(0)}, "rng"),
        ],
    )
    def test_bad_arguments(self, arguments, name):
        with pytest.raises(ValidationError, match=rf"^{name}: "):
            Channel([[1.0]]).sample(**arguments)


@settings(max_examples=30)
@given(seed=seeds)
def test_post_processing_never_raises_the_information(seed):
    rng = np.random.default_rng(seed)
    channel, after = random_channel(rng, 3, 4), random_channel(rng, 4, 3)
    prior = rng.dirichlet(np.ones(3))
    before = information(prior, channel.matrix)
    assert information(prior, channel.then(after).matrix) <= before + 1e-12
    assert information(prior, channel.product(channel).matrix) >= before - 1e-12
