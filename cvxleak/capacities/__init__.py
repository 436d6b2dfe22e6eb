"""Capacities of a channel."""

from cvxleak.capacities.bayes import AdditiveBayesCapacity, additive_bayes_capacity
from cvxleak.capacities.renyi import RenyiCapacity, maximal_alpha_leakage, renyi_capacity
from cvxleak.capacities.shannon import Capacity, capacity

__all__ = [
    "AdditiveBayesCapacity",
    "Capacity",
    "RenyiCapacity",
    "additive_bayes_capacity",
    "capacity",
    "maximal_alpha_leakage",
    "renyi_capacity",
]
