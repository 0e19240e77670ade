"""What a load shows of a flag that the engine itself does not tell. Pure."""

from __future__ import annotations

from sweeper.load import server_metrics
from sweeper.load.records import LevelRun
from sweeper.trial.plan import TrialPlan
from sweeper.verdicts import Diagnosis, Phase, Verdict


def most_running(run: LevelRun) -> float:
    """Most requests that the server was seen to run at once, 0 if it does not tell."""
    seen = [gauges.values.get(server_metrics.RUNNING, 0.0) for gauges in run.gauges]
    return max(seen, default=0.0)


def ignored_batch_limit(plan: TrialPlan, running: float) -> Diagnosis | None:
    """A failed trial if more requests ran at once than `max_num_seqs` allows.

    vLLM accepts the flag and tells its value nowhere outside development mode; a limit that was
    exceeded was not followed. That it was not reached proves nothing, and is no answer.

    Args:
        plan: of the trial.
        running: most requests seen at once, over all replicas.
    """
    asked = plan.engine_parameters.get("max_num_seqs")
    if isinstance(asked, bool) or not isinstance(asked, int | float):
        return None
    replicas = int(plan.engine_parameters.get("data_parallel_size", 1))
    if running <= asked * replicas:
        return None
    how = f"asked {asked:g}, {running / replicas:g} requests ran at once"
    return Diagnosis(
        Verdict.INFEASIBLE_CONFIG,
        Phase.LOAD,
        f"max_num_seqs had no effect: {how}",
        "leave the flag out of the space, or see the server's log for why it is not followed",
        learnt={"ineffective": {"max_num_seqs": how}, "rule": "flag_without_effect"},
    )
