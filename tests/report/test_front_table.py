"""The front in a terminal, at several widths."""

from __future__ import annotations

import pytest

from sweeper.config.schema import SelectConfig, SloConfig
from sweeper.pareto.cost import Price
from sweeper.pareto.points import points_frame
from sweeper.pareto.select import recommend
from sweeper.report.text import render_front
from tests.factories import study

FRAME = points_frame(study())


def table(monkeypatch: pytest.MonkeyPatch, columns: int, **select: object) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    price = select.pop("price", None)
    assert price is None or isinstance(price, Price)
    cfg = SelectConfig(slo=SloConfig(**select))  # type: ignore[arg-type]
    return render_front(FRAME, recommend(FRAME, cfg, price=price)).split("Trial ")[0]


def test_at_100_columns_no_cell_is_broken_and_settings_stand_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = table(monkeypatch, 100, price=Price(2.5))
    rows = text.split("trial 1:")[0].splitlines()
    assert max(map(len, rows)) <= 100
    assert "…" not in text
    assert any("concurrency 32" in row for row in rows)
    assert text.count("trial 1: enable_prefix_caching=False max_num_seqs=64") == 1


def test_where_there_is_room_they_stand_beside_the_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = table(monkeypatch, 160)
    assert "deployment" in text and "trial 1:" not in text


def test_a_narrower_terminal_gets_a_table_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "concurrency 32" in table(monkeypatch, 40)


def test_the_price_of_tokens_is_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "USD" in table(monkeypatch, 160, price=Price(2.5))
    assert "USD" not in table(monkeypatch, 160)


def test_a_miss_is_told_limit_by_limit() -> None:
    slo = SloConfig(e2e_p95_ms=200, min_output_tokens_per_s=1)
    text = render_front(FRAME, recommend(FRAME, SelectConfig(slo=slo)))
    assert "the nearest miss" in text
    assert "at least 1" in text and "kept" in text and "beyond" in text
