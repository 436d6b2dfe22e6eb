"""The largest leakage of a mechanism about a record, over all adversaries of a class."""

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.balances import balance, balance_of
from cvxleak.audit.curve import LeakageCurve, leakage_curve
from cvxleak.audit.disclosure import total_disclosure
from cvxleak.audit.product_leakage import ProductLeakage, product_leakage
from cvxleak.audit.product_priors import IndependentAdversary
from cvxleak.audit.record_leakage import RecordLeakage, group_leakage, record_leakage

__all__ = [
    "Adversary",
    "IndependentAdversary",
    "LeakageCurve",
    "ProductLeakage",
    "RecordLeakage",
    "balance",
    "balance_of",
    "group_leakage",
    "leakage_curve",
    "product_leakage",
    "record_leakage",
    "total_disclosure",
]
