"""Intervals for true counts: how often they hold, exactly; closed forms; and what is refused."""

import math
import pickle
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.kernel.numbers import ball, precision
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import (
    Channel,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.tables import (
    CountEstimate,
    PerturbationTable,
    RandomRounding,
    Table,
    TableRelease,
    estimate_counts,
)
from cvxleak.tables import sums as sums_module
from cvxleak.tables.sums import sum_within

PTABLE = PerturbationTable(Path(__file__).parents[2] / "examples" / "ptable.csv")
ROUNDING = RandomRounding(3)
UNEVEN = RandomRounding(5, up=[0.4, 0.1, 0.9, 0.5])
GAPS = Channel([[0.5, 0.0, 0.5], [0.2, 0.6, 0.2], [0.1, 0.0, 0.9]], [0, 1, 4], [0, 2, 5])


def law_of(noise: Any, count: int) -> Mapping[Any, Fraction]:
    if isinstance(noise, Channel):
        row = noise.row(count)
        return {y: Fraction(p) for y, p in zip(noise.outputs, row.tolist(), strict=True) if p}
    return noise.law(count)


def holds(found: CountEstimate, counts: Mapping[Any, int]) -> bool:
    return all(found[label][0] <= c <= found[label][1] for label, c in counts.items())


def name(noise: Any) -> str:
    return "ptable" if noise is PTABLE else repr(noise)


DISCRETE = [ROUNDING, UNEVEN, PTABLE, random_rounding(7, 3), truncated_geometric(7, 0.5), GAPS]


@pytest.mark.parametrize("noise", DISCRETE, ids=name)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_one_number_is_held_as_often_as_stated(noise: Any, confidence: float):
    """For every true count, exactly; and the interval is that of brute force."""
    counts = noise.inputs if isinstance(noise, Channel) else range(8)
    laws = {c: law_of(noise, c) for c in (counts if isinstance(noise, Channel) else range(40))}
    tail = (1 - Fraction(str(confidence))) / 2
    for count in counts:
        held = Fraction(0)
        for y, chance in laws[count].items():
            low, high = estimate_counts(y, noise, confidence)[0]
            kept = [
                c
                for c, law in laws.items()
                if y in law
                and sum(p for z, p in law.items() if z >= y) > tail
                and sum(p for z, p in law.items() if z <= y) > tail
            ]
            assert (low, high) == ((min(kept), max(kept)) if kept else (0, -1))
            held += chance * (low <= count <= high)
        assert held >= Fraction(str(confidence)) - Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("noises", "most"),
    [
        ({"a": ROUNDING, "b": ROUNDING, "all": ROUNDING}, 5),
        ({"a": UNEVEN, "b": truncated_geometric(5, 1.0), "all": RandomRounding(4)}, 5),
    ],
    ids=["alike", "mixed"],
)
@pytest.mark.parametrize("confidence", [0.6, 0.9])
def test_cells_and_margin_are_held_together(noises: Any, most: int, confidence: float):
    """Exactly, for all true counts, with independent noise of the margin."""
    found: dict[Any, CountEstimate] = {}
    for a, b in product(range(most + 1), repeat=2):
        counts = {"a": a, "b": b, "all": a + b}
        held = Fraction(0)
        laws = [law_of(noises[label], counts[label]).items() for label in noises]
        for outcome in product(*laws):
            published = tuple(y for y, _ in outcome)
            if published not in found:
                named = dict(zip(noises, published, strict=True))
                found[published] = estimate_counts(
                    named, noises, confidence, sums={"all": ["a", "b"]}
                )
            held += math.prod(p for _, p in outcome) * holds(found[published], counts)
        assert held >= confidence - 1e-9
    # The margin and its cells bound each other.
    for estimate in found.values():
        if estimate.fits:
            low, high = estimate["all"]
            ends = [estimate[label] for label in ("a", "b")]
            assert sum(low for low, _ in ends) <= low <= high <= sum(high for _, high in ends)


@pytest.mark.parametrize("noise", [ROUNDING, UNEVEN, PTABLE, GAPS], ids=name)
def test_sums_that_are_not_published_are_held(noise: Any):
    """Exactly, for three cells and their sum, by Chernoff's bound and the cells."""
    confidence, found = 0.6, {}
    counts = GAPS.inputs if noise is GAPS else range(4)
    for truth in product(counts, repeat=3):
        held = Fraction(0)
        for outcome in product(*(law_of(noise, c).items() for c in truth)):
            key = tuple(sorted(y for y, _ in outcome))
            if key not in found:
                found[key] = estimate_counts(key, noise, confidence, sums={"all": [0, 1, 2]})
            order = np.argsort([y for y, _ in outcome], kind="stable")
            named = {place: truth[cell] for place, cell in enumerate(order)} | {"all": sum(truth)}
            held += math.prod(p for _, p in outcome) * holds(found[key], named)
        assert held >= confidence - 1e-9


def test_gaussian_closed_form():
    z = stats.norm.isf(0.05 / 4)
    found = estimate_counts([100.25, 3.0], Gaussian(sigma=2.5))
    assert found[0] == (math.ceil(100.25 - 2.5 * z), math.floor(100.25 + 2.5 * z))
    assert found[1] == (0, math.floor(3 + 2.5 * z))


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Laplace(scale=3), stats.laplace(scale=3)),
        (Uniform(half_width=4.5), stats.uniform(-4.5, 9)),
        (Gaussian(sigma=1e6), stats.norm(scale=1e6)),
    ],
)
def test_quantiles(noise: Any, law: Any):
    reach = law.isf(0.05)
    y = 10_000_000.3
    low, high = estimate_counts(y, noise, 0.9)[0]
    assert (low, high) == (math.ceil(y - reach), math.floor(y + reach))


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (DiscreteLaplace(scale=2), lambda k: math.exp(-abs(k) / 2)),
        (DiscreteGaussian(sigma=3), lambda k: math.exp(-(k**2) / 18)),
        (
            Rounded(Gaussian(3), 2),
            lambda k: stats.norm.cdf(k + 1, 0, 3) - stats.norm.cdf(k - 1, 0, 3),
        ),
    ],
)
def test_noise_on_a_lattice(noise: Any, law: Any):
    """Against sums of the law: the counts from which the published value is in no tail."""
    y, step = 20, 2 if isinstance(noise, Rounded) else 1
    whole = sum(law(k) for k in range(-200, 201, step)) if step == 1 else 1.0

    def tails(count: int) -> tuple[float, float]:
        if step == 1:
            above = sum(law(k) for k in range(y - count, 201)) / whole
            return above, sum(law(k) for k in range(-200, y - count + 1)) / whole
        return stats.norm.sf(y - 1 - count, 0, 3), stats.norm.cdf(y + 1 - count, 0, 3)

    kept = [c for c in range(60) if min(tails(c)) > 0.05]
    assert estimate_counts(y, noise, 0.9)[0] == (min(kept), max(kept))


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), DiscreteGaussian(3)], ids=repr)
def test_sums_in_whole_numbers_are_convolutions(noise: Any):
    k = np.arange(-400, 401)
    law = np.exp(-abs(k) / 2) if isinstance(noise, DiscreteLaplace) else np.exp(-(k**2) / 18)
    law /= law.sum()
    both = np.convolve(np.convolve(law, law), law)
    tails = np.cumsum(both)
    reach = int(np.flatnonzero(tails > 0.02)[0]) - 1200
    assert sum_within([noise] * 3, Fraction(500), Fraction(1, 50)) == (500 + reach, 500 - reach)


def test_the_sum_of_gaussian_noise_is_gaussian():
    noises = [Gaussian(3), Gaussian(4)]
    assert sum_within([*noises, *noises], Fraction(500), Fraction(1, 50)) == sum_within(
        [Gaussian(math.sqrt(50))], Fraction(500), Fraction(1, 50)
    )


@pytest.mark.parametrize("noise", [DiscreteLaplace(2), DiscreteGaussian(3)], ids=repr)
def test_chernoff_is_wider_than_the_law_and_not_by_much(noise: Any, monkeypatch):
    exact = sum_within([noise] * 20, Fraction(500), Fraction(1, 50))
    monkeypatch.setattr(sums_module, "TERMS", 0)
    wide = sum_within([noise] * 20, Fraction(500), Fraction(1, 50))
    assert wide[0] < exact[0] <= exact[1] < wide[1]
    assert wide[1] - wide[0] < 1.5 * (exact[1] - exact[0])


@pytest.mark.parametrize(
    "noise",
    [
        Gaussian(2),
        Laplace(2),
        Uniform(3),
        DiscreteLaplace(2),
        DiscreteGaussian(0.4),
        DiscreteGaussian(3),
        Rounded(Uniform(3), 2),
        ROUNDING,
        GAPS,
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("slope", [0.01, 0.2, 0.45])
def test_moments(noise: Any, sign: int, slope: float):
    """The bound on log E exp(s D) is above the sum or integral, and equal where it can be."""
    s = sign * mpmath.mpf(slope)

    def mean(law: Mapping[Any, Any]) -> Any:
        return mpmath.fsum(p * mpmath.exp(s * k) for k, p in law.items()) / sum(law.values())

    reach = range(-800, 801)
    if isinstance(noise, Gaussian):
        truth = mpmath.exp(s**2 * 2)
    elif isinstance(noise, Laplace):
        truth = 1 / (1 - 4 * s**2)
    elif isinstance(noise, Uniform):
        truth = mpmath.quad(lambda z: mpmath.exp(s * z) / 6, [-3, 3])
    elif isinstance(noise, DiscreteLaplace):
        truth = mean({k: mpmath.exp(-mpmath.mpf(abs(k)) / 2) for k in reach})
    elif isinstance(noise, DiscreteGaussian):
        sigma = mpmath.mpf(str(noise.sigma))
        truth = mean({k: mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in reach})
    elif isinstance(noise, Rounded):
        # Of the count 0: the outputs -2, 0 and 2 have the chances 1/3.
        truth = (1 + 2 * mpmath.cosh(2 * s)) / 3
    else:
        counts = noise.inputs if isinstance(noise, Channel) else range(6)
        truth = max(
            mean({y - c: mpmath.mpf(float(p)) for y, p in law_of(noise, c).items()}) for c in counts
        )
    with precision():
        bound = float(sums_module._log_moment(noise, sign)(ball(slope)))
    exact = float(mpmath.log(truth))
    assert bound >= exact - 1e-12
    if not isinstance(noise, (DiscreteGaussian, Rounded)):
        assert bound == pytest.approx(exact, abs=1e-12)


def draw(noise: Any, rng: np.random.Generator) -> Any:
    if isinstance(noise, Gaussian):
        return rng.normal(0, noise.sigma)
    if isinstance(noise, Laplace):
        return rng.laplace(0, noise.scale)
    return rng.uniform(-noise.half_width, noise.half_width)


@pytest.mark.parametrize(
    "noises",
    [[Gaussian(2)] * 4, [Laplace(2)] * 4, [Gaussian(2), Laplace(1), Uniform(4), Gaussian(1)]],
    ids=["Gaussian", "Laplace", "mixed"],
)
def test_simulated_releases(noises: list[Any]):
    """Of 200 releases the intervals hold at least as often as stated, within 4 sigma."""
    rng, held, releases, confidence = np.random.default_rng(6), 0, 200, 0.8
    for _ in range(releases):
        counts = dict(enumerate(rng.poisson(8, 4).tolist()))
        published = [c + draw(noise, rng) for c, noise in zip(counts.values(), noises, strict=True)]
        found = estimate_counts(published, noises, confidence, sums={"all": range(4)})
        held += holds(found, counts | {"all": sum(counts.values())})
    assert held >= releases * confidence - 4 * math.sqrt(releases * confidence * (1 - confidence))


def test_a_release_says_which_sums_are_margins():
    table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=9)
    release = TableRelease(table, ROUNDING)
    published = [0, 3, 6, 3, 0, 9, 3, 6, 9]
    found = estimate_counts(published, release, 0.9)
    by_label = dict(zip(release.numbers, published, strict=True))
    margins = {
        label: [
            cell
            for cell in table.cells
            if all(a in (b, "total") for a, b in zip(label, cell, strict=True))
        ]
        for label in table.numbers[4:]
    }
    assert found == estimate_counts(by_label, ROUNDING, 0.9, sums=margins)
    assert found["f", "total"] == (1, 2)
    # Without the margins the cells are known less well.
    alone = estimate_counts(by_label, ROUNDING, 0.9)
    assert alone["f", "no"] == (0, 2)
    assert found["f", "no"] == (0, 1)


def test_margins_without_all_cells_are_numbers_of_their_own():
    table = Table({"answer": ["no", "yes"]}, people=9)
    noise = {("no",): ROUNDING, ("yes",): None, ("total",): Gaussian(2)}
    found = estimate_counts([3, 9.5], TableRelease(table, noise))
    assert found.labels == (("no",), ("total",))


def test_labels_and_kinds():
    named = pd.Series([3, 6], index=["f", "m"])
    found = estimate_counts(named, ROUNDING)
    assert found == estimate_counts({"f": 3, "m": 6}, {"m": ROUNDING, "f": ROUNDING})
    assert found.labels == ("f", "m")
    assert estimate_counts(np.array([3, 6]), [ROUNDING, ROUNDING]).lower == found.lower
    assert estimate_counts(np.int64(3), ROUNDING) == estimate_counts([3], ROUNDING)
    frame = found.to_frame()
    assert list(frame.index) == ["f", "m"]
    assert frame.loc["m", "upper"] == found["m"][1]
    assert pickle.loads(pickle.dumps(found)) == found
    assert "95 % confidence" in repr(found)
    assert "<td>f</td><td>3</td><td>1</td><td>5</td>" in found._repr_html_()
    with pytest.raises(KeyError):
        found["all"]


def test_what_no_count_explains():
    found = estimate_counts({"a": -500, "b": 3}, Gaussian(sigma=2))
    assert not found.fits
    assert (found["a"], found["b"]) == ((0, -1), (0, -1))
    assert "no counts fit" in str(found)
    cells = estimate_counts({"a": 3, "b": 3, "all": 30}, ROUNDING, sums={"all": ["a", "b"]})
    assert not cells.fits


def test_chains_of_sums_end():
    labels = [f"{place}" for place in range(12)]
    sums = {label: [before] for before, label in pairwise(labels)}
    published = dict.fromkeys(labels, 9) | {labels[-1]: 12}
    found = estimate_counts(published, ROUNDING, 0.99, sums=sums)
    assert set(zip(found.lower, found.upper, strict=True)) == {(10, 11)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"published": {"f": 4}}, r"published\['f'\]: found 4, which RandomRounding\(3\) gives"),
        ({"published": {"f": 4.5}}, r"published\['f'\]: found 4.5, which"),
        ({"published": [4.5], "noise": DiscreteLaplace(1)}, r"published\[0\]: .*no whole number"),
        (
            {"published": [3], "noise": Rounded(Gaussian(1), 2)},
            r"published\[0\]: .*no multiple of 2",
        ),
        ({"published": [3], "noise": GAPS}, r"published\[0\]: found 3, which"),
        ({"published": [math.nan]}, r"published\[0\]: "),
        ({"published": [math.inf]}, r"published\[0\]: "),
        ({"published": ["many"]}, r"published\[0\]: "),
        ({"published": []}, "published: found no numbers"),
        ({"published": {3}}, "published: found a set"),
        ({"published": np.eye(2)}, "published: found a table"),
        ({"published": pd.DataFrame({"a": [1]})}, "published: found a table"),
        ({"noise": 3}, "noise: found 3"),
        ({"noise": {"a": ROUNDING}}, "noise: found 'a'"),
        ({"noise": {}}, "noise: the number 0 has none"),
        ({"noise": [ROUNDING] * 3}, "noise: found 3 for 2"),
        ({"noise": Channel([[1.0]], [-1])}, "noise: an input of the channel"),
        ({"noise": Channel([[1.0]], [0.5])}, "noise: an input of the channel"),
        ({"noise": Channel([[1.0]], [0], ["a"])}, "noise: an output of the channel"),
        ({"confidence": 1}, "confidence: "),
        ({"confidence": 0}, "confidence: "),
        ({"confidence": "high"}, "confidence: "),
        ({"sums": {"all": [0, 7]}}, r"sums\['all'\]: found 7"),
        ({"sums": {"all": [0, 0]}}, r"sums\['all'\]: .*distinct"),
        ({"sums": {"all": []}}, r"sums\['all'\]: found no numbers"),
        ({"sums": {0: [0]}}, r"sums\[0\]: found 0"),
        ({"sums": {"all": "01"}}, r"sums\['all'\]: "),
        ({"sums": [0, 1]}, "sums: expected a mapping"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        estimate_counts(**{"published": [3, 6], "noise": ROUNDING} | arguments)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"labels": ("a",)}, "labels: "),
        ({"lower": (1,)}, "lower: found 1 for 2"),
        ({"upper": (1.5, 2)}, "upper: "),
        ({"confidence": 1.5}, "confidence: "),
        ({"published": ("x", 1)}, "published: "),
    ],
)
def test_parts_that_do_not_fit(parts: dict[str, Any], message: str):
    whole = {
        "labels": ("a", "b"),
        "published": (1, 2),
        "lower": (0, 0),
        "upper": (3, 4),
        "confidence": 0.9,
    }
    with pytest.raises(ValidationError, match=message):
        CountEstimate(**whole | parts)


def test_the_known_number_of_people_bounds_the_cells():
    table = Table({"x": ["a", "b"]}, counts=[2, 7], margins=False)
    release = TableRelease(table, RandomRounding(3))
    published = {("a",): 3, ("b",): 6}
    known, alone = (
        estimate_counts(published, release, 0.99, known_people=known) for known in (9, None)
    )
    assert alone[("a",)] == (1, 5)
    assert alone[("b",)] == (4, 8)
    assert known[("a",)] == (1, 5)
    assert known[("b",)] == (4, 8)
    found = estimate_counts(published, release, 0.99, known_people=6)
    assert found.labels == (("a",), ("b",))
    assert found[("a",)] == (1, 2)
    assert found[("b",)] == (4, 5)
    assert not estimate_counts(published, release, 0.99, known_people=90).fits
    with pytest.raises(ValidationError, match="known_people: needs noise that is a TableRelease"):
        estimate_counts([3, 6], RandomRounding(3), 0.99, known_people=9)
    outside = Table({"x": ["a", "b"]}, people=6, margins=False, outside=True)
    around = TableRelease(outside, RandomRounding(3))
    assert estimate_counts(published, around, 0.99, known_people=6) == found


def test_progress_is_told_and_ctrl_c_leaves_the_intervals_that_were_done():
    published, sums, told = {"f": 6, "m": 9}, {"all": ["f", "m"]}, []

    def tell(done, total):
        told.append((done, total))

    def press(done, total):
        if done == 2:
            raise KeyboardInterrupt

    whole = estimate_counts(published, RandomRounding(3), sums=sums, progress=tell)
    assert told == [(0, 3), (1, 3), (2, 3)]
    with pytest.raises(SolveInterrupted) as found:
        estimate_counts(published, RandomRounding(3), sums=sums, progress=press)
    part = found.value.bound
    assert part.labels == ("f", "m")
    assert whole.labels == ("f", "m", "all")
    # The sum bounds its parts only once it is known.
    for label in part.labels:
        assert part[label][0] <= whole[label][0] <= whole[label][1] <= part[label][1]


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (pd.DataFrame({"published": [3, 3, 6]}), "published: the columns are .*'count' and one"),
        (pd.DataFrame({"count": [3, 3]}, index=["a", "b"]), "reset_index"),
        (pd.DataFrame({"x": ["a", "c"], "count": [3, 3]}), r"found \('c',\).* a frame is a cross"),
    ],
)
def test_frames_of_other_shapes_say_which_are_read(frame, match):
    release = TableRelease(Table({"x": ["a", "b"]}, people=6), RandomRounding(3))
    with pytest.raises(ValidationError, match=match):
        estimate_counts(frame, release)
