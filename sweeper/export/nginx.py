"""A reverse proxy that holds to the admission limit, because vLLM does not. Pure.

``limit_conn`` counts requests that are being answered: nginx counts a connection only while it
works on a request of it, and each stream of HTTP/2 for itself. What is above is refused with 429,
so that the client can try again elsewhere; in vLLM it would wait and break the promise for all.
"""

from __future__ import annotations

from sweeper.export.bundle import ExportInput, File, Files
from sweeper.export.container import HEALTH
from sweeper.export.origin import origin
from sweeper.export.yaml_text import comments

FILE_NAME = "nginx.conf"
PORT = 8080
_READ_TIMEOUT_S = 3600


def render(source: ExportInput, upstream: str = "vllm") -> Files:
    """``nginx.conf`` for a server at host `upstream`; nothing where there is no limit."""
    if source.limit is None:
        return {}
    return {FILE_NAME: File(comments(origin(source)) + _text(source.limit, upstream, source.port))}


def _text(limit: int, upstream: str, port: int) -> str:
    return f"""\
limit_conn_zone $server_name zone=admitted:1m;
limit_conn_status 429;

upstream engine {{
    server {upstream}:{port};
    keepalive {limit};
}}

server {{
    listen {PORT};
    server_name vllm;
    client_max_body_size 64m;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;

    location / {{
        limit_conn admitted {limit};
        # Tokens are passed on as they come, however long an answer takes.
        proxy_buffering off;
        proxy_read_timeout {_READ_TIMEOUT_S}s;
        proxy_pass http://engine;
    }}

    # Answered at any load, and not counted.
    location = {HEALTH} {{
        proxy_pass http://engine;
    }}
    location = /metrics {{
        proxy_pass http://engine;
    }}
}}
"""
