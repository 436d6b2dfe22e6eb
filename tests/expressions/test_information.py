import cvxpy as cp
import numpy as np
import pytest
from scipy.special import rel_entr

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Channel, Mechanism, Prior, RecordSpace, TableQuery
from tests.reference import binary_entropy as h


def channel_set(k, m=None):
    Q = cp.Variable((k, m or k))
    return Q, [Q >= 0, cp.sum(Q, axis=1) == 1]


def repaired(rows):
    rows = np.maximum(rows, 0)
    return rows / rows.sum(axis=1, keepdims=True)


# Values: the twin of the measure, however the arguments are held.


def test_entropy_is_the_measure(case, hold):
    p, _ = case
    for kind in ("array", "constant", "variable", "parameter"):
        assert expressions.entropy(hold(p, kind)).value == pytest.approx(measures.entropy(p))


def test_mutual_information_is_the_measure(case, kinds, hold):
    p, q = case
    twin = expressions.mutual_information(hold(q, kinds[1]), hold(p, kinds[0]))
    assert twin.value == pytest.approx(measures.mutual_information(q, p), abs=1e-12)


def test_conditional_entropy_is_the_rest_of_the_entropy(case, kinds, hold):
    p, q = case
    twin = expressions.conditional_entropy(hold(q, kinds[1]), hold(p, kinds[0]))
    rest = measures.entropy(p) - measures.mutual_information(q, p)
    assert twin.value == pytest.approx(rest, abs=1e-12)


@pytest.mark.parametrize("kind", ["array", "constant", "variable", "parameter"])
@pytest.mark.parametrize("prior_kind", ["array", "constant", "parameter"])
def test_joint_information_is_the_measure(case, kind, prior_kind, hold):
    p, q = case
    twin = expressions.joint_information(hold(p[:, None] * q, kind), hold(p, prior_kind))
    assert twin.value == pytest.approx(measures.mutual_information(q, p), abs=1e-12)


def test_model_objects_are_taken_as_they_are():
    p, q = Prior([0.25, 0.75], ["a", "b"]), Channel([[0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    twin = expressions.mutual_information(q, p)
    assert twin.value == pytest.approx(measures.mutual_information(q, p))


def test_labels_are_matched_as_in_the_measure():
    p, q = Prior([0.25, 0.75], ["a", "b"]), Channel([[0.9, 0.1], [0.4, 0.6]], ["b", "a"])
    truth = measures.mutual_information(q.matrix, [0.75, 0.25])
    assert expressions.mutual_information(q, p).value == pytest.approx(truth)
    assert expressions.mutual_information(q.to_pandas(), p.to_pandas()).value == (
        pytest.approx(truth)
    )
    query = queries()[2]
    datasets = list(query.space.datasets())
    law, rows = np.random.default_rng(4).dirichlet(np.ones(6)), np.eye(3)
    mixed = Prior(law[::-1], datasets[::-1])
    assert expressions.record_information(rows, mixed, query, 0).value == pytest.approx(
        measures.record_information(Mechanism(query, rows), law, 0)
    )


def test_lumped_entropy_is_the_measure(hold):
    count = AdditiveQuery(RecordSpace.binary(30), [(0, 1)] * 30)
    lumped = Mechanism(count, np.eye(31)).lumped(0)
    w = np.random.default_rng(3).dirichlet(np.ones(len(lumped.multiplicities)))
    w[2], w[5] = w[2] + w[5], 0.0
    for kind in ("array", "variable", "parameter"):
        twin = expressions.lumped_entropy(hold(w, kind), lumped)
        assert twin.value == pytest.approx(measures.lumped_entropy(w, lumped), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 1.5, 2, 5])
def test_exp_sibson_information_is_the_measure(case, kinds, hold, alpha):
    p, q = case
    twin = expressions.exp_sibson_information(hold(q, kinds[1]), hold(p, kinds[0]), alpha)
    truth = np.exp((alpha - 1) / alpha * measures.sibson_information(q, p, alpha))
    assert twin.value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 1.5, 2, 5])
def test_exp_arimoto_information_is_the_measure(case, kinds, hold, alpha):
    p, q = case
    prior = hold(p, kinds[0])
    if kinds[0] == "variable":
        with pytest.raises(ValidationError, match="prior: found variables"):
            expressions.exp_arimoto_information(hold(q, "array"), prior, alpha)
        return
    twin = expressions.exp_arimoto_information(hold(q, kinds[1]), prior, alpha)
    truth = np.exp((alpha - 1) / alpha * measures.arimoto_information(q, p, alpha))
    assert twin.value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("kind", ["array", "parameter"])
def test_what_records_and_groups_tell_is_the_measure(kind, hold):
    for query in queries():
        rng = np.random.default_rng(3)
        p = rng.dirichlet(np.full(query.space.size, 0.5))
        p[:2] = 0.0
        p /= p.sum()
        q = rng.dirichlet(np.ones(3), size=len(query.values))
        mechanism = Mechanism(query, q)
        for size in (1, 2):
            twin = expressions.group_information(hold(q, "variable"), hold(p, kind), query, size)
            truth = measures.group_information(mechanism, p, size)
            assert twin.value == pytest.approx(truth, abs=1e-12)
        n = query.space.records
        for records, given in [(0, 1), (1, 0), (n - 1, 0), *([((0, 2), 1)] if n > 2 else [])]:
            twin = expressions.conditional_record_information(
                hold(q, "variable"), hold(p, kind), query, records, given
            )
            truth = measures.conditional_record_information(mechanism, p, records, given)
            assert twin.value == pytest.approx(truth, abs=1e-12)


def test_conditional_information_takes_the_law_of_records_and_query_value(hold):
    query = queries()[0]
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(2), size=4)
    law = np.zeros((4, 4))
    for mass, x in zip(p, query.space.datasets(), strict=True):
        law[2 * x[2] + x[0], query.values.index(query(x))] += mass
    twin = expressions.conditional_record_information(q, hold(law, "parameter"), query, 2, 0)
    truth = measures.conditional_record_information(Mechanism(query, q), p, 2, 0)
    assert twin.value == pytest.approx(truth)


def queries():
    mixed = RecordSpace([(0, 1, 2), ("no", "yes")])
    return [
        AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3),
        AdditiveQuery(RecordSpace.binary(3), [(0, 1), (0, 2), (0, 2)], modulus=3),
        TableQuery(mixed, [1, 0, 2, 1, 0, 0], ("a", "b", "c")),
    ]


@pytest.mark.parametrize("query", queries(), ids=lambda query: repr(query)[:12])
@pytest.mark.parametrize("records", [0, np.int64(1), (0, 1), [1, 0]])
@pytest.mark.parametrize("zeros", [False, True])
def test_record_information_is_the_measure(query, records, zeros, hold):
    rng = np.random.default_rng(11)
    p = rng.dirichlet(np.ones(query.space.size))
    if zeros:
        p *= np.array([x[0] == query.space.alphabets[0][0] for x in query.space.datasets()])
        p /= p.sum()
    q = rng.dirichlet(np.ones(3), size=len(query.values))
    truth = measures.record_information(Mechanism(query, q), p, records)
    for prior in ("array", "constant", "parameter"):
        for channel in ("array", "variable", "parameter"):
            twin = expressions.record_information(hold(q, channel), hold(p, prior), query, records)
            assert twin.value == pytest.approx(truth, abs=1e-12)


def test_record_information_takes_the_law_of_record_and_query_value(hold):
    query = queries()[0]
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(2), size=4)
    law = np.zeros((2, 4))
    for mass, x in zip(p, query.space.datasets(), strict=True):
        law[x[1], query.values.index(query(x))] += mass
    truth = measures.record_information(Mechanism(query, q), p, 1)
    for kind in ("array", "constant", "parameter"):
        twin = expressions.record_information(hold(q, "variable"), hold(law, kind), query, 1)
        assert twin.value == pytest.approx(truth)


def test_record_information_of_ten_thousand_records():
    n = 10_000
    parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
    flip = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    lumped = flip.lumped(0)
    weights = np.array([0.4, 0.1, 0.2, 0.3])
    law = np.zeros((2, 2))
    for a, context, w in zip(lumped.value_index, lumped.contexts, weights, strict=True):
        law[a, parity.values.index(context[0])] = w
    twin = expressions.record_information(flip.channel, law, parity, 0)
    assert twin.value == pytest.approx(measures.lumped_information(weights, lumped))


def test_a_labeled_channel_is_matched_to_the_query_by_label():
    query = queries()[2]
    rows = np.random.default_rng(2).dirichlet(np.ones(2), size=3)
    shuffled = Channel(rows, ["c", "a", "b"])
    p = np.full(6, 1 / 6)
    truth = measures.record_information(Mechanism(query, shuffled), p, 0)
    assert expressions.record_information(shuffled, p, query, 0).value == pytest.approx(truth)


# Curvature and DPP.


def leaves(kind):
    return (cp.Parameter(3, nonneg=True) if kind == "parameter" else np.array([0.2, 0.3, 0.5])), (
        cp.Parameter((3, 4)) if kind == "parameter" else np.full((3, 4), 0.25)
    )


@pytest.mark.parametrize("kind", ["data", "parameter"])
def test_curvature_in_the_channel(kind):
    p, _ = leaves(kind)
    Q = cp.Variable((3, 4))
    information = expressions.mutual_information(Q, p)
    equivocation = expressions.conditional_entropy(Q, p)
    joint = expressions.joint_information(Q, p)
    assert information.is_convex()
    assert not information.is_concave()
    assert equivocation.is_concave()
    assert joint.is_convex()
    assert information.is_dpp()
    assert equivocation.is_dpp()
    assert joint.is_dpp()


@pytest.mark.parametrize("kind", ["data", "parameter"])
def test_curvature_in_the_prior(kind):
    _, q = leaves(kind)
    p = cp.Variable(3)
    for twin in (
        expressions.mutual_information(q, p),
        expressions.conditional_entropy(q, p),
        expressions.entropy(p),
    ):
        assert twin.is_concave()
        assert not twin.is_convex()
        assert twin.is_dpp()


@pytest.mark.parametrize("kind", ["data", "parameter"])
def test_curvature_of_sibsons_information(kind):
    p, q = leaves(kind)
    P, Q = cp.Variable(3), cp.Variable((3, 4))
    for alpha, in_channel, in_prior in [(0.5, "CONCAVE", "CONVEX"), (3, "CONVEX", "CONCAVE")]:
        for twin, curvature in [
            (expressions.exp_sibson_information(Q, p, alpha), in_channel),
            (expressions.exp_arimoto_information(Q, p, alpha), in_channel),
            (expressions.exp_sibson_information(q, P, alpha), in_prior),
        ]:
            assert twin.curvature == curvature
            assert twin.is_dpp()


def test_curvature_of_what_groups_tell():
    Q, p = cp.Variable((4, 3)), cp.Parameter(8, nonneg=True)
    for twin in (
        expressions.group_information(Q, p, queries()[0], 2),
        expressions.conditional_record_information(Q, p, queries()[0], 0, (1, 2)),
    ):
        assert twin.is_convex()
        assert not twin.is_concave()
        assert twin.is_dpp()


@pytest.mark.parametrize("shape", [(8,), (2, 4)])
def test_curvature_of_record_information(shape):
    Q = cp.Variable((4, 3))
    twin = expressions.record_information(Q, cp.Parameter(shape, nonneg=True), queries()[0], 0)
    assert twin.is_convex()
    assert twin.is_dpp()


def test_lumped_entropy_is_concave():
    lumped = Mechanism(queries()[0], np.eye(4)).lumped(0)
    assert expressions.lumped_entropy(cp.Variable(6), lumped).is_concave()


@pytest.mark.parametrize(
    ("build", "cones"),
    [
        (lambda Q: expressions.mutual_information(Q, [0.5, 0.5, 0.0]), 6),
        (lambda Q: expressions.conditional_entropy(np.eye(3), cp.Variable(3)), 3),
        (
            lambda Q: expressions.record_information(
                Q,
                [[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]],
                AdditiveQuery(RecordSpace([(0, 1), (0, 1)]), [(0, 1)] * 2),
                0,
            ),
            3,
        ),
        (lambda Q: expressions.joint_information(Q, [0.5, 0.5, 0.0]), 6),
    ],
)
def test_cells_known_to_be_zero_cost_no_cone(build, cones):
    expression = build(cp.Variable((3, 3)))
    sense = cp.Minimize if expression.is_convex() else cp.Maximize
    data, _, _ = cp.Problem(sense(expression)).get_problem_data("CLARABEL")
    assert data["dims"].exp == cones


# Optima in closed form.


@pytest.mark.parametrize(("k", "D"), [(2, 0.1), (3, 0.2), (5, 0.4)])
def test_rate_distortion_of_a_uniform_source(k, D, solver):
    Q, rules = channel_set(k)
    rate = expressions.mutual_information(Q, np.full(k, 1 / k))
    problem = cp.Problem(cp.Minimize(rate), [*rules, cp.trace(Q) >= k * (1 - D)])
    problem.solve(solver=solver)
    best = repaired(Q.value)
    closed_form = np.log(k) - h(D) - D * np.log(k - 1)
    assert measures.mutual_information(best, np.full(k, 1 / k)) == pytest.approx(
        closed_form, abs=2e-4
    )
    assert np.allclose(best, np.where(np.eye(k), 1 - D, D / (k - 1)), atol=1e-3)


@pytest.mark.parametrize("flip", [0.05, 0.11, 0.3])
def test_capacity_of_the_binary_symmetric_channel(flip, solver):
    p = cp.Variable(2)
    rows = np.array([[1 - flip, flip], [flip, 1 - flip]])
    problem = cp.Problem(
        cp.Maximize(expressions.mutual_information(rows, p)), [p >= 0, cp.sum(p) == 1]
    )
    assert problem.solve(solver=solver) == pytest.approx(np.log(2) - h(flip), abs=1e-5)
    assert np.allclose(p.value, 0.5, atol=1e-2)


def test_capacity_of_the_z_channel():
    flip = 0.3
    p = cp.Variable(2)
    capacity = cp.Maximize(expressions.mutual_information([[1.0, 0.0], [flip, 1 - flip]], p))
    problem = cp.Problem(capacity, [p >= 0, cp.sum(p) == 1])
    closed_form = np.log(1 + (1 - flip) * flip ** (flip / (1 - flip)))
    assert problem.solve(solver="CLARABEL") == pytest.approx(closed_form, abs=1e-7)


def test_capacity_meets_the_optimality_conditions():
    rows = np.random.default_rng(8).dirichlet(np.full(5, 0.4), size=6)
    p = cp.Variable(6)
    problem = cp.Problem(
        cp.Maximize(expressions.mutual_information(rows, p)), [p >= 0, cp.sum(p) == 1]
    )
    capacity = problem.solve(solver="CLARABEL")
    divergence = rel_entr(rows, np.maximum(p.value, 0) @ rows).sum(axis=1)
    assert (divergence <= capacity + 1e-4).all()
    assert np.allclose(divergence[p.value > 1e-2], capacity, atol=1e-4)
    assert (divergence < capacity - 0.1).any()  # some input is not worth using


def test_least_information_meets_the_optimality_conditions(solver):
    """The best rows at distortion D are tilted output laws, q(y|x) ~ r(y) e^(-s d(x,y))."""
    rng = np.random.default_rng(4)
    p, d = rng.dirichlet(np.full(4, 3.0)), np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    Q, rules = channel_set(4)
    budget = cp.sum(cp.multiply(p[:, None] * d, Q)) <= 0.3
    problem = cp.Problem(cp.Minimize(expressions.mutual_information(Q, p)), [*rules, budget])
    problem.solve(solver=solver)
    best = repaired(Q.value)
    tilted = (p @ best) * np.exp(-budget.dual_value * d)
    assert np.allclose(best, tilted / tilted.sum(axis=1, keepdims=True), atol=2e-3)


def test_joint_form_and_channel_form_have_one_optimum(solver):
    rng = np.random.default_rng(6)
    p, d = rng.dirichlet(np.full(4, 3.0)), rng.random((4, 3))
    least = p @ d.min(axis=1)
    Q, rules = channel_set(4, 3)
    J = cp.Variable((4, 3))
    by_channel = cp.Problem(
        cp.Minimize(expressions.mutual_information(Q, p)),
        [*rules, cp.sum(cp.multiply(p[:, None] * d, Q)) <= least + 0.05],
    )
    by_joint = cp.Problem(
        cp.Minimize(expressions.joint_information(J, p)),
        [J >= 0, cp.sum(J, axis=1) == p, cp.sum(cp.multiply(d, J)) <= least + 0.05],
    )
    by_channel.solve(solver=solver)
    by_joint.solve(solver=solver)
    first = measures.mutual_information(repaired(Q.value), p)
    second = measures.mutual_information(repaired(J.value), p)
    assert first == pytest.approx(second, abs=2e-4)
    assert first > 0.05


def test_parity_hides_least_when_it_flips_most():
    """Against one who knows the other bit, parity with a bounded flip is a binary channel."""
    parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    Q, rules = channel_set(2)
    leak = expressions.record_information(Q, [0.5, 0.0, 0.5, 0.0], parity, 0)
    problem = cp.Problem(cp.Minimize(leak), [*rules, cp.trace(Q) >= 1.6])
    assert problem.solve(solver="CLARABEL") == pytest.approx(np.log(2) - h(0.2), abs=1e-6)


@pytest.mark.parametrize("alpha", [0.5, 2, 3])
def test_renyi_capacity_of_the_binary_symmetric_channel(alpha, solver):
    """Its best prior is uniform, at every order."""
    p = cp.Variable(2)
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])
    power = expressions.exp_sibson_information(rows, p, alpha)
    sense = cp.Maximize(power) if alpha > 1 else cp.Minimize(power)
    found = cp.Problem(sense, [p >= 0, cp.sum(p) == 1]).solve(solver=solver)
    truth = measures.sibson_information(rows, [0.5, 0.5], alpha)
    assert alpha / (alpha - 1) * np.log(found) == pytest.approx(truth, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.5, 3])
def test_the_least_sibson_information_of_a_truthful_bit(alpha, solver):
    Q, rules = channel_set(2)
    power = expressions.exp_sibson_information(Q, [0.5, 0.5], alpha)
    sense = cp.Minimize(power) if alpha > 1 else cp.Maximize(power)
    found = cp.Problem(sense, [*rules, cp.trace(Q) >= 1.6]).solve(solver=solver)
    truth = measures.sibson_information([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5], alpha)
    assert alpha / (alpha - 1) * np.log(found) == pytest.approx(truth, abs=1e-3)


def test_one_who_knows_the_other_bit_of_a_parity(solver):
    parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    Q, rules = channel_set(2)
    leak = expressions.conditional_record_information(Q, np.full(4, 0.25), parity, 0, 1)
    whole = expressions.group_information(Q, np.full(4, 0.25), parity, 2)
    for told in (leak, whole):
        least = cp.Problem(cp.Minimize(told), [*rules, cp.trace(Q) >= 1.6]).solve(solver=solver)
        assert least == pytest.approx(np.log(2) - h(0.2), abs=1e-4)


@pytest.mark.parametrize("zero", [False, True])
def test_a_parameter_is_compiled_once_and_followed(zero):
    """The same problem solved again at another prior gives what a new problem gives."""
    priors = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4, 0.0] if zero else [0.6, 0.3, 0.1])]
    p = cp.Parameter(3, nonneg=True)
    Q, rules = channel_set(3)
    truth = cp.sum(cp.multiply(np.eye(3), cp.diag(p) @ Q)) >= 0.8
    problem = cp.Problem(cp.Minimize(expressions.mutual_information(Q, p)), [*rules, truth])
    assert problem.is_dpp()
    for prior in priors:
        p.value = prior
        again = problem.solve(solver="CLARABEL", enforce_dpp=True)
        fresh = cp.Problem(
            cp.Minimize(expressions.mutual_information(Q, prior)),
            [*rules, cp.sum(cp.multiply(prior, cp.diag(Q))) >= 0.8],
        ).solve(solver="CLARABEL")
        assert again == pytest.approx(fresh, abs=1e-6)


# Arguments.


Q34, P3 = cp.Variable((3, 4)), np.full(3, 1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expressions.entropy([0.5, 0.6]), "prior: sums to 1.1"),
        (lambda: expressions.entropy([[1.0]]), "prior: expected 1 dimension"),
        (lambda: expressions.entropy(cp.Variable((2, 2))), "prior: expected 1 dimension"),
        (lambda: expressions.entropy(cp.square(cp.Variable(2))), "prior: .* not affine"),
        (
            lambda: expressions.entropy(cp.Variable(2, complex=True)),
            "prior: .* not affine and real",
        ),
        (lambda: expressions.entropy(cp.Constant([0.5, 0.6])), "prior: sums to 1.1"),
        (lambda: expressions.mutual_information(Q34, [0.5, 0.5]), "prior: found 2 .* 3 inputs"),
        (
            lambda: expressions.mutual_information(Q34, cp.Variable(3)),
            "both in the prior and in the channel",
        ),
        (lambda: expressions.mutual_information(np.ones((3, 2)), P3), "channel: row 0 sums to 2"),
        (
            lambda: expressions.conditional_entropy(Q34, cp.Variable(3)),
            "both in the prior and in the channel",
        ),
        (lambda: expressions.joint_information(Q34, cp.Variable(3)), "prior: found variables"),
        (lambda: expressions.joint_information(Q34, [0.5, 0.5]), "joint: found 3 rows"),
        (lambda: expressions.joint_information(np.ones((3, 4)), P3), "joint: sums to 12"),
        (
            lambda: expressions.mutual_information(
                Channel(np.eye(2), ["b", "c"]), Prior([0.5, 0.5], "ab")
            ),
            "prior: its labels",
        ),
        (
            lambda: expressions.lumped_entropy(
                [0.5, 0.5], Mechanism(queries()[0], np.eye(4)).lumped(0)
            ),
            "weights: found 2",
        ),
        (
            lambda: expressions.lumped_entropy([0.5, 0.5], "lumped"),
            "lumped: expected a Lumped",
        ),
        (
            lambda: expressions.record_information(Q34, np.full(8, 1 / 8), queries()[0], 0),
            "channel: found 3 rows",
        ),
        (
            lambda: expressions.record_information(cp.Variable((4, 2)), P3, queries()[0], 0),
            "prior: found 3 outcomes; 8 are needed",
        ),
        (
            lambda: expressions.record_information(
                cp.Variable((2, 2)),
                Prior([0.5, 0.5], "ab"),
                AdditiveQuery(RecordSpace.binary(200), [(0, 1)] * 200, modulus=2),
                0,
            ),
            r"prior: found 2 outcomes; about 10\^60 are needed",
        ),
        (
            lambda: expressions.record_information(
                cp.Variable((4, 2)), np.full((2, 2), 0.25), queries()[0], 0
            ),
            r"prior: found shape \(2, 2\)",
        ),
        (
            lambda: expressions.record_information(
                np.full((4, 2), 0.5), cp.Variable(8), queries()[0], 0
            ),
            "prior: found variables",
        ),
        (
            lambda: expressions.record_information(Q34, np.full(8, 1 / 8), "count", 0),
            "query: expected a Query",
        ),
        (
            lambda: expressions.record_information(
                cp.Variable((4, 2)), np.full(8, 1 / 8), queries()[0], 3
            ),
            "records: found 3",
        ),
        (
            lambda: expressions.record_information(
                cp.Variable((4, 2)), np.full(8, 1 / 8), queries()[0], (1, 1)
            ),
            "records: .* distinct",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
