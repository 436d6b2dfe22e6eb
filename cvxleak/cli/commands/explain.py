"""``cvxleak explain``: what a mechanism's privacy means, in the terms of each community."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from cvxleak.cli.commands.audit import Floors, Html, about_mechanism
from cvxleak.cli.commands.solve import Asked, answer
from cvxleak.cli.options import (
    Json,
    Picture,
    Proof,
    SpecPath,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
)
from cvxleak.core.work import WORK_LIMIT

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile

__all__ = ["explain"]


def explain(
    spec: SpecPath,
    entropy_floor: Floors = None,
    units: Unit = Units.nats,
    json_path: Json = None,
    html: Html = None,
    plot: Picture = None,
    certificate: Proof = None,
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = WORK_LIMIT,
    tol: Tolerance = None,
) -> None:
    """Explain what epsilon means for tests, guesses and leakage."""

    def ask(spec_file: SpecFile) -> Asked:
        from cvxleak.cli.from_spec import build_task, independent_people
        from cvxleak.cli.pictures import draw_trade_off
        from cvxleak.report import explain as explained
        from cvxleak.report.targets import check_floors

        task = build_task(spec_file, "explain")
        floors, _ = spec_file.numbers(
            "--entropy-floor",
            entropy_floor,
            "adversary.entropy_floors",
            units.value,
            functools.partial(check_floors, task.mechanism),
            task.mechanism.space.max_entropy,
        )
        asked = {key: value for key, value in spec_file.spec.explain if value is not None}
        asked["independent"] = independent_people(spec_file, task.mechanism, units.value)
        return Asked(
            functools.partial(explained, task.mechanism, floors, prior=task.prior, **asked),
            lambda _: about_mechanism(spec_file, task.mechanism),
            lambda path, *_: draw_trade_off(task.mechanism, path),
            places={key: f"{spec_file.path}: explain.{key}" for key in asked},
        )

    answer(
        "explain",
        spec,
        ask,
        units.value,
        json_path=json_path,
        certificate=certificate,
        html=html,
        plot=plot,
        time_limit=time_limit,
        work_limit=work_limit,
        tol=tol,
    )
