"""How a team's servers were deployed in a trial, for the terminal."""

from rich.console import Console
from rich.text import Text

from lockstorm.results.verdict import DeploymentResult, effects_sentence


def show_deployment(console: Console, deployment: DeploymentResult | None) -> None:
    """The settings that the servers took, what they changed, and each setting that the trial chose itself."""
    if not deployment:
        return
    count = deployment.replicas
    replicas = f", {count} replica{'s' if count > 1 else ''} of each" if count else ""
    console.print(Text(f"servers: {', '.join(deployment.settings) or 'their defaults'}{replicas}", "dim"))
    sentence = effects_sentence(deployment)
    if sentence:
        console.print(Text(sentence))
    by_reason: dict[str, list[str]] = {}
    for each in deployment.changed:
        by_reason.setdefault(each.why, []).append(each.setting)
    for why, settings in by_reason.items():
        console.print(Text(f"not taken: {', '.join(settings)}: {why}", "dim"))
