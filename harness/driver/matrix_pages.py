"""The matrix as GitHub tables."""

from typing import Any

from harness.driver.matrix_table import MARK, grid_of


def tables(result: dict[str, Any]) -> str:
    """Scenarios down, locks across."""
    grid, columns = grid_of(result["cells"])
    lines = ["| | " + " | ".join(f"`{column}`" for column in columns) + " |", "|---|" + ":-:|" * len(columns)]
    for scenario, row in grid.items():
        marks = [MARK[row[column]["result"]] if column in row else " " for column in columns]
        lines.append(f"| {scenario} | " + " | ".join(marks) + " |")
    return "\n".join(lines) + "\n"
