"""What is said of somebody else's iterates: values, claims, steps back, and the verdict."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr

from cvxleak import Mechanism, verify
from cvxleak.audit import RecordLeakage
from cvxleak.capacities import Capacity
from cvxleak.constraints import local_dp
from cvxleak.core import ValidationError
from cvxleak.design import DesignForPrior
from cvxleak.iterative import alternating_leakage, blahut_arimoto
from cvxleak.local_dp import MinDistortionLocalDP, MinLocalDP
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import Channel, Prior
from cvxleak.problem import Iterates, verify_iterates
from cvxleak.queries import count, parity
from cvxleak.release import release_problem

Q = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])


def updates(steps: int, power: float = 1.0, clip: float = 0.0):
    """Yield Blahut and Arimoto's laws and their values, with two ways to have them wrong."""
    p = np.array([0.1, 0.1, 0.8])
    for _ in range(steps):
        divergences = rel_entr(Q, p @ Q).sum(axis=1)
        yield p, float(p @ divergences)
        p = p * np.exp(power * divergences)
        p = np.maximum(p / p.sum(), clip)
        p = p / p.sum()


def test_a_sound_iteration_is_optimal_and_monotone():
    points, values = zip(*updates(3000), strict=True)
    report = verify_iterates(Capacity(Q), np.array(points), np.array(values))
    assert report.optimal
    assert report.verdict.startswith("optimal")
    assert report.first_setback is None
    assert report.first_wrong_claim is None
    assert "monotone over all 3000 points" in str(report)
    np.testing.assert_allclose(report.values, values, atol=1e-12)
    answer = verify(report.repaired.certificate)
    assert answer.passed
    assert answer.lower == pytest.approx(report.values[-1], abs=1e-9)


def test_a_bug_is_found_by_the_place_where_the_method_stands_still():
    points = [p for p, _ in updates(2000, clip=0.2)]  # a floor that is no part of the problem
    report = verify_iterates(Capacity(Q), points)
    assert not report.optimal
    assert "no longer moves" in report.verdict
    assert "convex" in report.verdict
    least, most = report.last.shortfall
    assert 0 < least <= most
    assert report.better == report.last.bound.witness


def test_a_step_back_and_a_wrong_value_are_placed():
    points, values = map(list, zip(*updates(30), strict=True))
    points[20], values[20] = points[5], values[5]
    values[7] = values[7] + 0.01
    report = verify_iterates(Capacity(Q), points, values)
    assert report.first_setback == 20
    assert report.first_wrong_claim == 7
    text = str(report)
    assert "not monotone: point 20" in text
    assert "wrong value" in text


def test_rounding_is_no_step_back():
    point = np.full(3, 1 / 3)
    report = verify_iterates(Capacity(Q), [point, point - np.array([1e-17, 0, 0]), point])
    assert report.first_setback is None


def test_steps_of_a_minimum_are_read_the_other_way_round():
    problem = MinLocalDP([[0.6, 0.3, 0.1]], 0.3)
    bound = problem.solve()
    channels = [np.full((3, 3), (1 - t) / 3) + t * np.eye(3) for t in (0.9, 0.8, 0.7)]
    assert verify_iterates(problem, channels, bound=bound).first_setback is None
    assert verify_iterates(problem, channels[::-1], bound=bound).first_setback == 1


def test_the_papers_method_is_told_from_a_worse_one():
    problem = RecordLeakage(Mechanism(count(4), random_rounding(4, base=3)), 2.4)
    run = alternating_leakage(problem.mechanism, 2.4, start="random", rng=0)
    report = verify_iterates(problem, run.point, run.value)
    assert report.first_wrong_claim is None
    assert report.verdict.startswith("stopped")
    least, _ = report.last.shortfall
    assert least == pytest.approx(problem.solve().lower - run.value, abs=1e-9)
    assert report.repaired.lower == pytest.approx(run.value, abs=1e-6)
    assert verify(report.repaired.certificate).passed


def test_a_point_outside_is_no_better_than_what_is_nearest():
    problem = RecordLeakage(Mechanism(parity(2), binary_symmetric(0.1)), 0.9)
    report = verify_iterates(problem, [0.5, 0.0, 0.5, 0.0], 0.3681)
    assert report.verdict.startswith("not feasible (entropy is at least the floor: violated by")
    assert "and so better than anything feasible" in report.verdict
    assert report.repaired.lower < 0.3681 <= report.values[0] + 1e-4
    assert verify(report.repaired.certificate).passed
    assert problem.check(report.repaired.witness).feasible


def test_a_bound_of_another_problem_is_noticed():
    mechanism = Mechanism(parity(2), binary_symmetric(0.1))
    bound = RecordLeakage(mechanism, 1.3).solve()
    report = verify_iterates(RecordLeakage(mechanism, 0.5), [0.5, 0.5, 0.0, 0.0], bound=bound)
    assert report.last.feasible
    assert not report.optimal
    assert "`bound` is that of another problem" in report.verdict
    with pytest.raises(ValidationError, match="bound: found a certificate of"):
        verify_iterates(Capacity(Q), [0.5, 0.25, 0.25], bound=bound)


def test_a_bound_of_another_instance_is_refused():
    clean = Capacity(np.eye(3)).solve()
    for judge in (Capacity(Q).check, Capacity(Q).repair, lambda p, bound: judged(p, bound)):
        with pytest.raises(ValidationError, match="bound: found one of another problem"):
            judge([0.4, 0.4, 0.2], bound=clean)


def judged(point: Any, bound: Any):
    return verify_iterates(Capacity(Q), point, bound=bound)


def test_a_wide_bracket_makes_nothing_optimal():
    problem = RecordLeakage(Mechanism(count(4), random_rounding(4, base=3)), 2.0)
    wide = problem.solve(tol=0.9)
    report = verify_iterates(problem, wide.witness, bound=wide)
    assert not report.optimal
    assert report.verdict.startswith("as good as any point known")
    anyone = Prior.uniform(problem.mechanism.space.size)
    assert verify_iterates(problem, anyone).verdict.startswith("stopped")


def test_single_precision_is_no_violation():
    found = Capacity(Q).solve().witness.probabilities.astype(np.float32)
    report = verify_iterates(Capacity(Q), found)
    assert report.last.feasible
    assert report.optimal
    assert not verify_iterates(Capacity(Q), found.astype(float) + 1e-4).last.feasible


def test_infinite_values_are_steps_too():
    def response(share: float):
        return np.full((3, 3), (1 - share) / 3) + share * np.eye(3)

    problem = MinLocalDP([[0.5, 0.3, 0.2]], 0.25)
    report = verify_iterates(problem, [response(share) for share in (1.0, 0.7, 0.9, 0.8)])
    assert report.first_setback == 2
    report = verify_iterates(problem, [response(0.7), response(1.0)])
    assert report.first_setback == 1
    assert report.verdict.startswith("its value is infinite")


def test_a_point_is_repaired_near_itself_under_own_constraints():
    problem = DesignForPrior(
        [0.5, 0.3, 0.2],
        1 - np.eye(3),
        0.45,
        constraints=[lambda q: local_dp(q, 0.8), lambda q: q[0, 2] == q[1, 2]],
    )
    bound = problem.solve()
    far = problem.repair(np.eye(3), bound=bound)
    assert verify(far.certificate).passed
    assert problem.check(far.witness, bound=bound).feasible
    assert far.upper > 1.01 * bound.upper  # the point's own value, and not the optimum's
    better = 0.9 * bound.witness.matrix + 0.1 * far.witness.matrix
    kept = problem.repair(better, bound=bound)
    np.testing.assert_allclose(kept.witness.matrix, better, atol=1e-6)


def test_specks_do_not_move_a_point_far():
    problem = MinDistortionLocalDP([[0.55, 0.4, 0.05]], 1.0)
    bound = problem.solve()
    point = np.array(bound.witness.matrix)
    point[2, 2] += 1e-9
    found = problem.repair(point / point.sum(axis=1, keepdims=True), bound=bound)
    assert found.upper == pytest.approx(bound.upper, abs=1e-6)


def test_labels_are_heeded():
    channel = Channel(Q, "abc", "xyz")
    law = {"a": 0.2, "b": 0.3, "c": 0.5}
    turned = Prior([law[x] for x in "cab"], list("cab"))
    report = verify_iterates(Capacity(channel), [turned, Prior(list(law.values()), "abc")])
    assert report.values[0] == pytest.approx(report.values[1])


def test_one_point_is_a_history_of_one():
    report = verify_iterates(Capacity(Q), [0.5, 0.25, 0.25])
    assert len(report.checks) == 1
    assert "a single point does not show why" in report.verdict


def test_a_callback_keeps_copies_and_the_last_point():
    watch, p = Iterates(Capacity(Q), every=10), np.full(3, 1 / 3)
    for step in range(25):
        watch(p, step)
        p[:] = [0.2 + 0.01 * step, 0.3, 0.5 - 0.01 * step]  # in place, as loops do
    assert watch.claimed == [0.0, 10.0, 20.0, 24.0]
    np.testing.assert_allclose(watch.points[-1], [0.43, 0.3, 0.27])
    assert verify_iterates(Capacity(Q), watch).values == watch.verify().values


class Tensor:
    """What PyTorch's tensors are like: no numbers without force."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, f"torch.{array.dtype}"

    def detach(self) -> "Tensor":
        return self

    def numpy(self, *, force: bool = False) -> Any:
        if not force:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad")
        return self.array

    def __array__(self, dtype: Any = None) -> Any:
        return np.array(self.numpy(), dtype=dtype)

    def __iter__(self):
        return (Tensor(row) for row in self.array)

    def __len__(self) -> int:
        return len(self.array)


def test_arrays_of_other_libraries_are_taken_as_they_come():
    laws = np.array([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]], dtype=np.float32)
    wanted = verify_iterates(Capacity(Q), laws).values
    for given in (Tensor(laws), [Tensor(law) for law in laws], laws.tolist()):
        assert verify_iterates(Capacity(Q), given).values == pytest.approx(wanted)


def test_masked_entries_are_no_numbers():
    law = np.ma.array([0.2, 0.3, 0.5], mask=[0, 1, 0])
    for judge in (Capacity(Q).check, lambda law: verify_iterates(Capacity(Q), law)):
        with pytest.raises(ValidationError, match="masked"):
            judge(law)


def torch_arrays(values):
    torch = pytest.importorskip("torch")
    double = torch.tensor(values)
    yield double
    yield double.float()
    yield double.clone().requires_grad_()
    yield torch.softmax(double.float().requires_grad_().log(), -1)
    yield torch.nn.Parameter(double)
    yield torch.stack([double, double], -1)[..., 0]  # not contiguous
    yield (-double)._neg_view()


def jax_arrays(values):
    jax = pytest.importorskip("jax")
    yield jax.numpy.asarray(values, dtype="float32")
    with jax.enable_x64(True):
        yield jax.numpy.asarray(values)


def like_torch(values):
    yield Tensor(np.array(values))
    yield Tensor(np.array(values, dtype=np.float32))


@pytest.mark.parametrize("arrays", [like_torch, torch_arrays, jax_arrays])
@pytest.mark.parametrize(
    ("problem", "point"),
    [
        (Capacity(Q), [0.2, 0.3, 0.5]),
        (RecordLeakage(Mechanism(parity(2), binary_symmetric(0.2)), 1.0), [0.3, 0.2, 0.2, 0.3]),
        (DesignForPrior([0.3, 0.7], 1 - np.eye(2), 0.2), [[0.9, 0.1], [0.15, 0.85]]),
        (MinLocalDP([[0.6, 0.3, 0.1]], 0.3), [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]),
    ],
)
def test_one_point_of_another_library_is_checked_and_repaired(problem, point, arrays):
    bound = problem.solve()
    wanted = problem.check(point, bound=bound)
    assert wanted.feasible
    for given in arrays(point):
        check = problem.check(given, bound=bound)
        assert check.feasible, check
        assert check.value == pytest.approx(wanted.value, abs=1e-6)
        repaired = problem.repair(given, bound=bound)
        end = repaired.lower if problem.maximize else repaired.upper
        assert end == pytest.approx(wanted.value, abs=2e-6)
        report = verify_iterates(problem, [given, given], bound=bound)
        assert report.values == (check.value,) * 2


def test_a_library_of_another_field_finds_a_release():
    # Sinkhorn scaling of a kernel to uniform outputs, as optimal transport has it, meets no
    # constraint on what coalitions learn.
    joint = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])
    problem = release_problem(joint, 0.05, 0.1)
    kernel = np.exp(-3.0 * (1 - np.eye(2)))[None].repeat(2, axis=0)
    for _ in range(50):
        kernel = kernel / kernel.sum(axis=1, keepdims=True)
        kernel = kernel / kernel.sum(axis=2, keepdims=True)
    report = verify_iterates(problem, kernel)
    assert not report.last.feasible
    assert verify(report.repaired.certificate).passed
    assert report.repaired.upper >= report.last.bound.lower


@pytest.mark.parametrize(
    ("law", "bits", "short"),
    [
        # dit 2.3, dit.algorithms.channelcapacity.channel_capacity(Q)
        ([0.44476920284457, 0.45532383785837144, 0.09990695929705852], 0.4146160145114366, 1.1e-7),
        # qif 1.6.0, qif.measure.shannon.add_capacity(Q, 1e-6)
        ([0.4449538864212039, 0.4555878342805104, 0.09945827929828575], 0.4146161899433355, 3e-12),
    ],
    ids=["dit", "qif"],
)
def test_what_other_programs_find(law: list[float], bits: float, short: float):
    report = verify_iterates(Capacity(Q), law, bits * np.log(2))
    assert report.last.feasible
    assert report.first_wrong_claim is None
    assert report.last.shortfall[1] == pytest.approx(short, rel=0.1, abs=1e-11)
    assert report.optimal == (short < 1e-9)
    assert verify(report.repaired.certificate).passed


def test_our_own_iteration_claims_its_values():
    run = blahut_arimoto(Q)
    report = verify_iterates(Capacity(Q), run.point, run.value)
    assert report.first_wrong_claim is None
    assert report.last.feasible


def test_a_table_has_a_row_for_each_point():
    pytest.importorskip("pandas")
    points, values = zip(*updates(4), strict=True)
    frame = verify_iterates(Capacity(Q), points, values).to_frame()
    assert list(frame["value"]) == pytest.approx(values)
    assert frame["feasible"].all()


@pytest.mark.parametrize(
    ("iterates", "claimed", "words"),
    [
        ([], None, "iterates: found none"),
        ([[0.5, 0.5, 0.0], [0.5, 0.5]], None, r"iterates\[1\]: found shape"),
        ([[0.5, 0.5, 0.0], [0.5, np.nan, 0.0]], None, r"iterates\[1\]: found nan"),
        ([[0.5, 0.5, 0.0]], [1.0, 2.0], "claimed: found 2 values"),
        ([[0.5, 0.5, 0.0]], "much", r"claimed\[0\]: expected a number"),
        ([[0.5, 0.5, 0.0]], {"value": 1.0}, r"claimed\[0\]: expected a number"),
        (np.eye(2), None, "as a single point: found shape"),
        ("a file", None, "candidate"),
        ([0.5, 0.5], None, r"candidate: found shape \(2,\)"),
    ],
)
def test_what_cannot_be_read_is_named(iterates: Any, claimed: Any, words: str):
    with pytest.raises(ValidationError, match=words):
        verify_iterates(Capacity(Q), iterates, claimed)


def test_a_callback_refuses_a_wrong_value_at_once():
    with pytest.raises(ValidationError, match="value: expected a number"):
        Iterates(Capacity(Q))([0.5, 0.5, 0.0], "much")


def test_something_else_than_a_problem_is_refused():
    with pytest.raises(ValidationError, match="problem"):
        verify_iterates(SimpleNamespace(), [0.5, 0.5])  # pyright: ignore[reportArgumentType]
