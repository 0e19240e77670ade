from __future__ import annotations

from sweeper.report.prior_text import prior_section, render_prior
from tests.search.priors.made import measured, truth
from tests.search.priors.test_record import CFG, study


def test_errors_order_and_weight_are_shown() -> None:
    outcomes, guide = study(lambda one: 1.5 * truth(one))
    text = render_prior(outcomes, CFG)
    assert "predicted against measured" in text
    assert "50.0%" in text and "0.0%" in text and "1.00" in text
    assert f"simulator {guide.weights['simulator']:.2f}" in text
    assert "followed now" not in render_prior(outcomes)


def test_the_report_has_the_same_table() -> None:
    outcomes, _ = study(lambda one: 1.5 * truth(one))
    html = prior_section(outcomes)
    assert "median of |predicted / measured - 1|" in html and "50.0%" in html


def test_without_priors_nothing_is_shown() -> None:
    outcomes = [measured(0, {}), measured(1, {"max_num_seqs": 8})]
    assert render_prior(outcomes, CFG) == ""
    assert prior_section(outcomes) == ""
