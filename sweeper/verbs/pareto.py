"""Show the Pareto front and the recommendation, without measuring again.

usage: python -m sweeper pareto study=NAME [format=table|json|csv]
           [select.slo.ttft_p95_ms=500] [select.slo.tpot_p95_ms=50] [select.slo.e2e_p95_ms=2000]
           [select.prefer=auto|throughput|latency|quality|cost|balanced]
           [hardware.price_per_hour=2.5]

Every row is an operating point: one deployment at one load level. Of the points that keep all
limits, select.prefer chooses one; the baseline stands beside it. Where weights or cache were
stored in more than one way, a last table says what each of them buys and costs.

limits (select.slo.NAME=...)
  ttft_, tpot_, e2e_ with mean, p50, p90, p95 or p99 and _ms    at most, in milliseconds
  min_output_tokens_per_s, also _per_gpu and _per_user          at least
  min_requests_per_s, min_goodput_share, min_quality            at least

preferences (select.prefer=...)
  auto         throughput under a limit, balanced without one
  throughput   the highest output tokens/s per device
  latency      the lowest E2E P95
  quality      the best quality, then the highest throughput
  cost         the lowest cost per output token; hardware.price_per_hour tells it in money
  balanced     the knee of the front: past it, more of one costs more than its share of another

If nothing keeps all limits, the nearest point is shown, and how far it is from each.

examples:
  python -m sweeper pareto study=qwen7b-gpu
  python -m sweeper pareto study=qwen7b-gpu select.slo.ttft_p95_ms=300 select.slo.tpot_p95_ms=40
  python -m sweeper pareto study=qwen7b-gpu select.prefer=cost hardware.price_per_hour=2.5

exit codes: 0 shown, 1 nothing is feasible, or nothing keeps all limits; 2 bad input
"""

from __future__ import annotations

from sweeper.pareto.cost import Price
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
    found = recommend(frame, study.cfg.select, price=Price.of(study.cfg.hardware))
    recommendation = with_command(found, frame, study.outcomes, study.cfg, study.paths.name)
    print(render_front(frame, recommendation, form))
    if form == "table" and (bought := render_trade(trade(study.outcomes))):
        print(f"\n{bought}")
    return 0 if recommendation.keeps_slo else 1
