"""Parts of adapters in Python: the protocol, with threads or with asyncio. A user's own Python imports this room, too.
It needs the standard library of Python 3.10."""

from __future__ import annotations
