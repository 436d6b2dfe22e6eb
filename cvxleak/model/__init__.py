"""The model: priors, channels, record spaces, queries, mechanisms, distortions, gains."""

from cvxleak.model.additive import AdditiveQuery
from cvxleak.model.channel import Channel, as_channel
from cvxleak.model.channel_set import ChannelSet, LumpedSet
from cvxleak.model.distortion import Distortion
from cvxleak.model.gain import (
    Arimoto,
    Gain,
    GainMatrix,
    Gini,
    Guess,
    GuessInTries,
    Shannon,
    gain_from_dict,
)
from cvxleak.model.knowledge import Expectation, Knowledge, KnownMarginals, RelativeEntropyBall
from cvxleak.model.lumping import Limits, Lumped
from cvxleak.model.mechanism import Mechanism
from cvxleak.model.noise import (
    AdditiveNoise,
    BoundedDensity,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    RealOutput,
    Rounded,
    Uniform,
)
from cvxleak.model.own_gain import as_gain
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace
from cvxleak.model.table import TableQuery

__all__ = [
    "AdditiveNoise",
    "AdditiveQuery",
    "Arimoto",
    "BoundedDensity",
    "Channel",
    "ChannelSet",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Distortion",
    "Expectation",
    "Gain",
    "GainMatrix",
    "Gaussian",
    "Gini",
    "Guess",
    "GuessInTries",
    "Knowledge",
    "KnownMarginals",
    "Laplace",
    "Limits",
    "Lumped",
    "LumpedSet",
    "Mechanism",
    "Prior",
    "Query",
    "RealOutput",
    "RecordSpace",
    "RelativeEntropyBall",
    "Rounded",
    "Shannon",
    "TableQuery",
    "Uniform",
    "as_channel",
    "as_gain",
    "as_prior",
    "gain_from_dict",
]
