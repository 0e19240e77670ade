"""How the model rates each token of a prompt, in the shape of vLLM's `prompt_logprobs`."""

from __future__ import annotations

from typing import Any

ROWS_AT_ONCE = 256
"""A row is as wide as the vocabulary, and several copies of it are made."""

Scores = list[dict[str, dict[str, Any]] | None]


def prompt_logprobs(model: Any, ids: list[int], top: int, tokenizer: Any) -> Scores:
    """For each token of a prompt its own log-probability and rank, given those before it.

    Args:
        model: a causal language model.
        ids: token ids.
        top: further tokens told at each place, the likeliest first.
        tokenizer: gives the tokens' text.

    Returns:
        None for the first token, then token id → `logprob` (natural), `rank` (1 is the likeliest)
        and `decoded_token`.
    """
    import torch

    with torch.inference_mode():
        given = torch.tensor([ids], device=model.device)
        logits = model(input_ids=given, use_cache=False).logits[0, :-1]
        scores: Scores = [None]
        for start in range(0, len(ids) - 1, ROWS_AT_ONCE):
            rows = torch.log_softmax(logits[start : start + ROWS_AT_ONCE].float(), dim=-1)
            following = given[0, start + 1 : start + 1 + len(rows)]
            own = rows.gather(1, following[:, None])
            ranks = (rows > own).sum(dim=1) + 1
            best = rows.topk(top, dim=1) if top else None
            for n, token in enumerate(following.tolist()):
                told = {token: (float(own[n, 0]), int(ranks[n]))}
                if best is not None:
                    pairs = zip(best.indices[n].tolist(), best.values[n].tolist(), strict=True)
                    told = {t: (v, rank) for rank, (t, v) in enumerate(pairs, 1)} | told
                scores.append({str(t): _entry(tokenizer, t, *v) for t, v in told.items()})
        return scores


def _entry(tokenizer: Any, token: int, logprob: float, rank: int) -> dict[str, Any]:
    return {"logprob": logprob, "rank": rank, "decoded_token": tokenizer.decode([token])}
