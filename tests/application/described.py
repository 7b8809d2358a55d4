"""Applications of these tests: a service of `services/`, and the file that describes it."""

import sys
from pathlib import Path
from typing import Any

from lockstorm.search.explore import search_schedules
from lockstorm.search.search_plan import SearchRequest, plan_search
from lockstorm.search.search_result import SearchResult

SERVICES = Path(__file__).with_name("services")
CREDITS = """
[app]
command = [{python}, "{services}/credits.py", "{{port}}"]
ready = "GET /health"
environment = {{ MODE = "{mode}", REDIS_URL = "{{redis}}", DATABASE_URL = "postgresql://app@{{postgres}}/app" }}
[servers]
redis = {{}}
postgres = {{ setup = "credits.sql" }}
[[request]]
name = "consume"
http = "POST /resources/1/consume"
times = 3
[[check]]
sql = "select remaining from users where id = 1"
equals = "10 - consume.ok"
"""
COUNTED = """[[check]]
model = "counter"
starts = 10
add = {{ consume = -1 }}
answer = "remaining"
"""
NIGHTLY = """[[request]]
name = "nightly"
command = [{python}, "{services}/nightly.py", "wrong", "{{number}}"]
times = 1
[[check]]
sql = "select remaining from users where id = 1"
equals = "10 - consume.ok + 5 * nightly.ok"
"""
VALUE = """
[[request]]
name = "put"
http = "PUT /resources/1"
body = "{{number}}"
times = 1
[[request]]
name = "show"
http = "GET /resources/1"
times = 3
[[check]]
model = "register"
starts = 10
writes = ["put"]
reads = ["show"]
answer = "data.remaining"
"""
WORKERS = """
[app]
command = [{python}, "{services}/workers.py"]
ready = "GET /"
lease = "2s"
environment = {{ MODE = "{mode}", REDIS_URL = "{{redis}}", PORT = "{{port}}" }}
[servers]
redis = {{}}
[[request]]
name = "job"
redis = "RPUSH jobs {{number}}"
times = 2
[[check]]
redis = "HVALS done"
empty = true
"""
UNFOLLOWED_FILE = """
[app]
command = [{python}, "{services}/unfollowed.py", "{{port}}"]
ready = "GET /"
environment = {{ MODE = "{mode}", REDIS_URL = "{{redis}}" }}
[servers]
redis = {{}}
[[request]]
name = "ask"
http = "POST /"
[[check]]
redis = "HVALS none"
empty = true
"""
TICKER = """
[app]
command = [{python}, "{services}/ticker.py"]
ready = "GET /"
lease = "1s"
lasts = "7s"
environment = {{ MODE = "{mode}", REDIS_URL = "{{redis}}", PORT = "{{port}}" }}
[servers]
redis = {{}}
[[request]]
name = "ask"
redis = "SET asked yes"
times = 1
[[check]]
redis = "EVAL 'local n = 0 for _, v in ipairs(redis.call(\\"HVALS\\", \\"ticks\\")) \
do n = math.max(n, v) end return n' 0"
at_most = 1
[[check]]
redis = "EVAL 'return redis.call(\\"HLEN\\", \\"ticks\\")' 0"
at_least = "ask.ok"
"""


def described(directory: Path, text: str, mode: str, *changes: tuple[str, str]) -> Path:
    """Writes the file. `changes`: what is replaced in it by what."""
    (directory / "credits.sql").write_text((SERVICES / "credits.sql").read_text())
    text = text.format(python=f'"{sys.executable}"', services=SERVICES, mode=mode)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    file = directory / "lockstorm-app.toml"
    file.write_text(text)
    return file


def searched(file: Path, **options: Any) -> SearchResult:
    request = SearchRequest(f"app:{file}", **{"workers": 1, "faults": "none", **options})
    return search_schedules(plan_search(request), lambda _: None)
