"""The post-processings of the paper's proofs: ENVELOPE Theorem 2, Theorem 5 (iii), Appendix C.

Each is a channel from the outputs: `channel.then(attack)` is what the adversary sees.
`PMLEnvelope.solve` has the best post-processing of all as its witness.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, real_number
from cvxleak.envelope.response import Response
from cvxleak.measures import pml, pml_left_quantile, pml_right_quantile
from cvxleak.model import Channel, Prior, as_channel

__all__ = ["ResponseAttack", "deterministic_form", "quantile_attack", "response_attack"]


def quantile_attack(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, delta: float, share: float
) -> Channel:
    """Return the post-processing that lifts the left quantile of leakage towards the right one.

    Let B be the outputs that leak at least the right quantile, of total probability delta, and G
    the others. The attack merges an output of B with the part `share` of an output of G: so the
    outputs that leak little have less than the probability 1 - delta, and as `share` falls to 0,
    the merged output leaks as much as its part in B.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    delta : float
        In (0, 1).
    share : float
        eta in (0, 1), the part of the output of G.

    Returns
    -------
    Channel
        From the m outputs to themselves, without the two that are taken from, then the merged
        output and the rest of the second. If the quantiles are equal, the outputs unchanged.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or a number is out of range.

    Notes
    -----
    ENVELOPE Theorem 2, h_eta in Appendix B. The output of B is its most probable one, and that of
    G its least probable one. The right quantile is approached, and in general not attained.

    Examples
    --------
    ENVELOPE Example 1 at delta = 0.1, where the quantiles are log(10/9) and log 4:

    >>> import numpy as np
    >>> from cvxleak.envelope import quantile_attack
    >>> from cvxleak.measures import pml_left_quantile
    >>> from cvxleak.model import Channel
    >>> Q = Channel([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]])
    >>> seen = [Q.then(quantile_attack([0.25] * 4, Q, 0.1, eta)) for eta in (0.1, 0.001)]
    >>> [round(float(np.exp(pml_left_quantile(q, [0.25] * 4, 0.1))), 3) for q in (Q, *seen)]
    [1.111, 2.526, 3.972]
    """
    q = as_channel(channel)
    level = real_number(delta, "delta", 0.0, 1.0, open_low=True, open_high=True)
    part = real_number(share, "share", 0.0, 1.0, open_low=True, open_high=True)
    low, high = (float(f(q, prior, level)) for f in (pml_left_quantile, pml_right_quantile))
    if low == high:
        return Channel(np.eye(len(q.outputs)), q.outputs, q.outputs)
    leakage, mass = pml(q, prior), q.output(prior).probabilities
    bad = leakage >= high * (1 - 1e-12)
    first = int(np.argmax(np.where(bad, mass, -1.0)))
    second = int(np.argmin(np.where(bad | (mass == 0), np.inf, mass)))
    others = np.delete(np.eye(len(mass)), [first, second], axis=1)
    merged, rest = np.zeros(len(mass)), np.zeros(len(mass))
    merged[first], merged[second], rest[second] = 1.0, part, 1 - part
    labels = [y for i, y in enumerate(q.outputs) if i not in (first, second)]
    names = [("merged", q.outputs[first], q.outputs[second]), ("rest", q.outputs[second])]
    return Channel(np.column_stack([others, merged, rest]), q.outputs, [*labels, *names])


@dataclass(frozen=True, eq=False)
class ResponseAttack:
    """The post-processing Z of k-RR in the proof of Theorem 5 (iii), for one delta.

    Attributes
    ----------
    n : int
        N, for which delta = q_1 + ... + q_(N-1) + theta q_N.
    theta, theta_1, theta_2 : float
        theta in (0, 1], and where the three regimes of h_delta meet.
    weights : ndarray, shape (N,)
        eta_1, ..., eta_N, how output N is split between the N symbols.
    channel : Channel
        From the outputs, in the order of the prior, to the symbols 1, ..., N. The first N - 1 have
        the probability delta together.

    Examples
    --------
    >>> from cvxleak.envelope import response_attack
    >>> attack = response_attack([0.2, 0.3, 0.5], 1.0, 0.7)
    >>> attack.n, round(attack.theta_1, 2), round(attack.theta, 2), round(attack.theta_2, 2)
    (3, 0.13, 0.24, 0.73)
    >>> attack.channel.matrix.round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 1.  , 0.  ],
           [0.19, 0.05, 0.76]])
    """

    n: int
    theta: float
    theta_1: float
    theta_2: float
    weights: Array
    channel: Channel


def response_attack(prior: Prior | ArrayLike, epsilon: float, delta: float) -> ResponseAttack:
    """Return the post-processing of k-RR that attains the lower bound of Theorem 5 (iii).

    The N - 1 least probable outputs keep a symbol each, the outputs after N share the symbol N,
    and output N is split so that the symbols before N leak alike, or as much as output N - 1 does
    (for theta up to theta_1). For theta above theta_2 the outputs themselves have the larger
    quantile.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input, in any order; every input has a positive probability.
    epsilon : float
        Parameter of the mechanism: finite and positive, in nats.
    delta : float
        In (q_1, 1], where q_1 is the least probability of an output.

    Raises
    ------
    ValidationError
        If the prior is not such a distribution, or a number is out of range.

    See Also
    --------
    response_lower_bound : The bound h_delta.
    pml_envelope : The best post-processing of all.

    Notes
    -----
    ENVELOPE Theorem 5 (iii) and (16).

    Examples
    --------
    >>> from cvxleak.envelope import response_attack, response_lower_bound
    >>> from cvxleak.measures import pml_right_quantile
    >>> from cvxleak.mechanisms import randomized_response
    >>> prior = [0.2, 0.3, 0.5]
    >>> attack = response_attack(prior, 1.0, 0.7)
    >>> seen = randomized_response(3, 1.0).then(attack.channel)
    >>> round(float(pml_right_quantile(seen, prior, 0.7)), 5)
    0.54134
    >>> round(float(response_lower_bound(prior, 1.0, 0.7)), 5)
    0.54134
    """
    data = Response(prior, real_number(epsilon, "epsilon", 0.0, open_low=True)).paper()
    level = real_number(delta, "delta", 0.0, 1.0, open_low=True)
    n, theta = data.place(level)
    if n == 1:
        raise ValidationError(
            f"delta: found {level:g}; up to q_1 = {data.masses[0]:g} the outputs themselves attain "
            "the envelope, and the attack is for a larger delta"
        )
    alpha, beta, q, last = data.alpha, data.beta, data.masses[: n - 1], float(data.masses[n - 1])
    own = alpha * (q[-1] - q) / (alpha * last - beta * q[-1])
    theta_1 = float(own.sum())
    theta_2 = alpha * ((n - 1) * last - float(q.sum())) / (last * (alpha - beta))
    if theta <= theta_1:
        weights = own * (theta / theta_1)
    else:
        level_of_all = ((n - 1) * alpha + theta * beta) / level
        weights = (alpha - level_of_all * q) / (level_of_all * last - beta)
    weights = np.append(np.maximum(weights, 0.0), 1 - theta)
    weights /= weights.sum()
    k = len(data.masses)
    rows = np.zeros((k, n))
    rows[: n - 1, : n - 1] = np.eye(n - 1)
    rows[n - 1] = weights
    rows[n:, n - 1] = 1.0
    back = np.argsort(data.order)
    labels = prior.labels if isinstance(prior, Prior) else range(k)
    channel = Channel(rows[back], labels, range(1, n + 1))
    return ResponseAttack(n, theta, theta_1, theta_2, weights, channel)


def deterministic_form(
    channel: Channel | ArrayLike, post_processing: Channel | ArrayLike
) -> tuple[Channel, Channel]:
    """Return a channel that leaks the same, and the function of its output that Z is.

    A randomized post-processing P(z|y) is the function (y, z) -> z of the output of the channel
    P(z|y) q(y|x), whose outputs (y, z) are proportional to y's. Merging proportional outputs
    returns the channel itself, up to its own ones, so both leak the same.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    post_processing : Channel or array_like, shape (m, n)
        The rows P(z|y).

    Returns
    -------
    extended : Channel
        From the inputs to the pairs (y, z) with P(z|y) > 0.
    function : Channel
        From these pairs to z; each row has one 1.

    Raises
    ------
    ValidationError
        If the two do not match.

    See Also
    --------
    cvxleak.model.Channel.reduced : The channel with proportional outputs merged.
    cvxleak.measures.event_leakage : The leakage of z is that of the event of its pairs.

    Notes
    -----
    ENVELOPE Appendix C.

    Examples
    --------
    >>> from cvxleak.envelope import deterministic_form
    >>> noisy, coarse = [[0.75, 0.25], [0.25, 0.75]], [[0.5, 0.5], [0.0, 1.0]]
    >>> extended, function = deterministic_form(noisy, coarse)
    >>> extended.outputs, extended.matrix[0], function.matrix.tolist()
    (((0, 0), (0, 1), (1, 1)), array([0.375, 0.375, 0.25 ]), [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    """
    q, z = as_channel(channel), as_channel(post_processing, "post_processing")
    q.then(z)  # or says what does not match
    places = np.argwhere(z.matrix > 0)
    labels = [(q.outputs[y], z.outputs[j]) for y, j in places]
    extended = q.matrix[:, places[:, 0]] * z.matrix[places[:, 0], places[:, 1]]
    function = np.eye(z.shape[1])[places[:, 1]]
    return Channel(extended, q.inputs, labels), Channel(function, labels, z.outputs)
