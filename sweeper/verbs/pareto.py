"""Show the Pareto front and the recommendation, without measuring again.

usage: python -m sweeper pareto study=NAME [format=table|json|csv]
                                [select.slo.ttft_p95_ms=500] [select.slo.tpot_p95_ms=50]
                                [select.slo.e2e_p95_ms=2000]
                                [select.prefer=throughput|latency|quality]

Every row is an operating point: one deployment at one load level. With an SLO, the recommendation
is the point with the highest throughput (or what select.prefer says) that keeps it; without one,
the knee of the front. The baseline stands beside it. Where weights or cache were stored in more
than one way, a second table says what each of them buys and costs.

exit code: 1 if nothing is feasible, or nothing keeps the SLO (the nearest miss is shown)
"""

from __future__ import annotations

from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.confirm_text import with_command
from sweeper.report.text import render_front
from sweeper.report.trade.table import trade
from sweeper.report.trade.text import render_trade
from sweeper.verbs.studies import choice, open_study


def run(arguments: list[str]) -> int:
    """Print the front; exit code 1 if the study has no feasible point."""
    form, rest = choice(arguments, "format", ["table", "json", "csv"])
    study = open_study(rest)
    frame = points_frame(study.outcomes)
    recommendation = with_command(
        recommend(frame, study.cfg.select), frame, study.outcomes, study.cfg, study.paths.name
    )
    print(render_front(frame, recommendation, form))
    if form == "table" and (bought := render_trade(trade(study.outcomes))):
        print(f"\n{bought}")
    return 0 if recommendation.keeps_slo else 1
