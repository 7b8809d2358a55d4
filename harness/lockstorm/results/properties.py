"""The properties that a history is judged by (docs/verdicts.md), and the policies that read unknown outcomes."""

REQUIRED = ("mutual_exclusion", "integrity", "fencing", "liveness")  # by default, as far as they apply
PROPERTIES = (*REQUIRED[:3], "ownership", "liveness", "capacity", "lease", "fairness", "cost")
RELEASE_POLICIES = ("not-happened", "released", "unknown")
ACQUIRE_POLICIES = ("not-happened", "unknown")
