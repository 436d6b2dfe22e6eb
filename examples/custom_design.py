"""Design a survey's noise with two constraints of your own, and compare three solvers.

A person states their income bracket, one of six, and the interviewer's tablet stores a noisy
bracket. How little can it reveal about the person, if the data have to be useful in two regions,
the noise is locally differentially private, and two further constraints have to hold that no
library provides?

    minimize    I(X;Y)
    subject to  e^3-local differential privacy
                E |X - Y| <= 0.9 in either region
                the mean of the stored bracket is within 0.8 of the true one, for each true bracket
                each bracket is stored for at least a tenth of all people

Each solver's result is checked without the solver. Its channel may violate some constraints
slightly, so it is mixed with a strictly feasible channel, just enough to satisfy all of them, and
its leakage is computed in NumPy: an upper bound. Since I(X;Y) is convex, the linear program with
its tangent there has a value that no channel in the set beats: a lower bound.
"""

import cvxpy as cp
import numpy as np

import cvxleak as cl
from cvxleak.constraints import distortion_budget, local_dp, mi_budget
from cvxleak.measures import local_dp_epsilon, mutual_information, worst_case_distortion
from cvxleak.model import Channel, Distortion, Prior

BRACKETS = np.arange(6)
NORTH = Prior([0.10, 0.20, 0.30, 0.20, 0.15, 0.05])
SOUTH = Prior([0.30, 0.25, 0.20, 0.15, 0.07, 0.03])
EVERYBODY = Prior((NORTH.probabilities + SOUTH.probabilities) / 2)
ERROR = Distortion.absolute(BRACKETS.tolist())
OPTIONS = {
    "CLARABEL": {},
    "ECOS": {},
    "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 100_000},
}


def allowed(margin: float = 0.0) -> tuple[cp.Variable, list[cp.Constraint]]:
    """A channel, and the set to choose it from: two builders, and two rules of your own.

    A margin makes every budget smaller by that share.
    """
    Q, rows = cl.channel(6, 6)
    bias = Q @ BRACKETS - BRACKETS
    less = 1 - margin
    return Q, [
        *rows,
        *local_dp(Q, epsilon=3.0 * less),
        *distortion_budget(Q, [NORTH, SOUTH], ERROR, 0.9 * less),
        bias >= -0.8 * less,
        bias <= 0.8 * less,
        EVERYBODY.probabilities @ Q >= 0.1 / less,  # no class is empty
    ]


def violation(channel: Channel) -> float:
    """Return by how much a channel breaks the rule that it breaks most, 0 if it keeps them all."""
    bias = channel.matrix @ BRACKETS - BRACKETS
    return max(
        0.0,
        local_dp_epsilon(channel) - 3.0,
        worst_case_distortion(channel, [NORTH, SOUTH], ERROR) - 0.9,
        float(np.abs(bias).max()) - 0.8,
        0.1 - float(channel.output(EVERYBODY).probabilities.min()),
    )


def design(solver: str) -> tuple[Channel, float]:
    """Return a channel that keeps all rules, and by how much the solver's own breaks one."""
    Q, rules = allowed()
    leakage = cp.Variable()
    problem = cp.Problem(cp.Minimize(leakage), rules + mi_budget(Q, EVERYBODY, leakage))
    problem.solve(solver=solver, **OPTIONS[solver])
    rows = Channel.from_solver(Q.value).matrix
    Q, rules = allowed(margin=0.02)
    cp.Problem(cp.Minimize(0), rules).solve(solver="HIGHS")
    inside = Channel.from_solver(Q.value).matrix
    # The set is convex, and `inside` keeps every rule with room to spare.
    for share in (0.0, *10.0 ** np.arange(-14, 1)):
        channel = Channel((1 - share) * rows + share * inside)
        if violation(channel) == 0:
            return channel, violation(Channel(rows))
    raise RuntimeError("the rules leave no room")


def lower_end(channel: Channel) -> float:
    """Return the least value on the set of the tangent of I(X;Y) at the channel."""
    p = EVERYBODY.probabilities[:, None]
    slope = p * np.log(channel.matrix / channel.output(EVERYBODY).probabilities)
    Q, rules = allowed()
    tangent = cp.Problem(cp.Minimize(cp.sum(cp.multiply(slope, Q))), rules)
    # I is homogeneous of degree one in Q, so the tangent at a channel has no constant.
    return float(tangent.solve(solver="HIGHS"))


def main() -> list[tuple[float, float]]:
    """Print a comparison; return the attained and the proved value for each solver."""
    installed = [solver for solver in OPTIONS if solver in cp.installed_solvers()]
    for solver in OPTIONS:
        if solver not in installed:
            print(f"{solver}: skipped, it is not installed")
    print(
        f"{'solver':10}{'I(X;Y), nats':>14}{'no less than':>14}{'violation':>11}{'repaired':>10}"
        f"{'epsilon':>10}{'distortion':>12}"
    )
    values = []
    for solver in installed:
        channel, missed = design(solver)
        upper, lower = mutual_information(channel, EVERYBODY), lower_end(channel)
        print(
            f"{solver:10}{upper:14.7f}{lower:14.7f}{missed:11.1e}{violation(channel):10.1g}"
            f"{local_dp_epsilon(channel):10.6f}"
            f"{worst_case_distortion(channel, [NORTH, SOUTH], ERROR):12.6f}"
        )
        values.append((upper, lower))
    return values


if __name__ == "__main__":
    main()
