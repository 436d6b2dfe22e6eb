"""What is given: priors, channels, record spaces, queries, mechanisms, distortions."""

from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.channel import Channel, as_channel
from cvxleak.model.channel_set import ChannelSet, LumpedSet
from cvxleak.model.distortion import Distortion
from cvxleak.model.knowledge import Expectation, Knowledge, KnownMarginals, RelativeEntropyBall
from cvxleak.model.lumping import Limits, Lumped
from cvxleak.model.mechanism import Mechanism
from cvxleak.model.noise import (
    AdditiveNoise,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace
from cvxleak.model.table import TableQuery

__all__ = [
    "AdditiveNoise",
    "AdditiveQuery",
    "Channel",
    "ChannelSet",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distortion",
    "Expectation",
    "Gaussian",
    "Knowledge",
    "KnownMarginals",
    "Laplace",
    "Limits",
    "Lumped",
    "LumpedSet",
    "Mechanism",
    "Prior",
    "Query",
    "RecordSpace",
    "RelativeEntropyBall",
    "Rounded",
    "TableQuery",
    "Uniform",
    "as_channel",
    "as_prior",
]
