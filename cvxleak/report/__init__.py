"""Reports: the results of a command, each with its unit and its meaning."""

from cvxleak.report.audit import audit_report, capacity_report
from cvxleak.report.design import design_report
from cvxleak.report.envelope import envelope_report
from cvxleak.report.explain import explain
from cvxleak.report.guessing import GuessRise, guess_rise
from cvxleak.report.html import check_page, html_page
from cvxleak.report.local_dp import local_dp_report
from cvxleak.report.names import BOUND, COMPUTED
from cvxleak.report.problems import problem_report
from cvxleak.report.progress import Progress
from cvxleak.report.quantity import Quantity, Report
from cvxleak.report.samples import samples_report
from cvxleak.report.tables import table_report
from cvxleak.report.targets import Target, check_targets

__all__ = [
    "BOUND",
    "COMPUTED",
    "GuessRise",
    "Progress",
    "Quantity",
    "Report",
    "Target",
    "audit_report",
    "capacity_report",
    "check_page",
    "check_targets",
    "design_report",
    "envelope_report",
    "explain",
    "guess_rise",
    "html_page",
    "local_dp_report",
    "problem_report",
    "samples_report",
    "table_report",
]
