"""Capacities of a channel."""

from cvxleak.capacities.renyi import RenyiCapacity, renyi_capacity
from cvxleak.capacities.shannon import Capacity, capacity

__all__ = ["Capacity", "RenyiCapacity", "capacity", "renyi_capacity"]
